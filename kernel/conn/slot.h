/* SPDX-License-Identifier: GPL-2.0 */
/* The slots of a bucket: tags, entries, and the packets that they match. */
#ifndef _L4LB_CONN_SLOT_H
#define _L4LB_CONN_SLOT_H

#include <linux/bitops.h>
#include <net/ipv6.h>

#include "conn/table.h"

#define TAG_BITS	8
#define SLOT_TAGS	GENMASK_ULL(L4LB_BUCKET_SLOTS * TAG_BITS - 1, 0)
#define TAG_ONES	(0x0101010101010101ULL & SLOT_TAGS)
#define TAG_HIGHS	(TAG_ONES << (TAG_BITS - 1))
#define KIND_MASK	7UL

static __always_inline u64 tag_of(u64 hash)
{
	return hash & GENMASK(TAG_BITS - 1, 0);
}

/* The highest bit of each byte that equals @tag; with 0, of each free slot. */
static __always_inline u64 tags_equal(u64 tags, u64 tag)
{
	const u64 rest = TAG_HIGHS - TAG_ONES;	/* 0x7f in each */
	u64 x = (tags ^ tag * TAG_ONES) & SLOT_TAGS;

	return ~(((x & rest) + rest) | x) & TAG_HIGHS;
}

static __always_inline unsigned int first_slot(u64 equal)
{
	return __ffs64(equal) / TAG_BITS;
}

static inline unsigned long slot_of(const struct l4lb_conn *conn,
				    enum l4lb_conn_kind kind)
{
	return (unsigned long)conn | kind;
}

static __always_inline struct l4lb_conn *slot_conn(unsigned long slot)
{
	return (struct l4lb_conn *)(slot & ~KIND_MASK);
}

static __always_inline enum l4lb_conn_kind slot_kind(unsigned long slot)
{
	return slot & KIND_MASK;
}

static __always_inline struct l4lb_conn_bucket *
home_of(const struct l4lb_conn_array *array, u64 hash)
{
	return &array->buckets[hash >> array->shift];
}

/* Is a slot of @kind for a packet with the header of @flow? */
static __always_inline bool same_key(const struct l4lb_conn *conn,
				     const struct l4lb_flow *flow, u8 af,
				     enum l4lb_conn_kind kind)
{
	if (conn->af != af || conn->proto != flow->proto)
		return false;
	if (kind == L4LB_CONN_OUT) {
		if (conn->dport != flow->sport || conn->cport != flow->dport)
			return false;
		if (af == AF_INET)
			return conn->v4.daddr == flow->saddr.ip &&
			       conn->v4.caddr == flow->daddr.ip;
		return ipv6_addr_equal(&conn->v6.daddr, &flow->saddr.in6) &&
		       ipv6_addr_equal(&conn->v6.caddr, &flow->daddr.in6);
	}
	if (conn->cport != flow->sport || conn->vport != flow->dport)
		return false;
	if (af == AF_INET)
		return conn->v4.caddr == flow->saddr.ip &&
		       conn->v4.vaddr == flow->daddr.ip;
	return ipv6_addr_equal(&conn->v6.caddr, &flow->saddr.in6) &&
	       ipv6_addr_equal(&conn->v6.vaddr, &flow->daddr.in6);
}

/* Do the replies of both have the same header? */
static inline bool same_replies(const struct l4lb_conn *a,
				const struct l4lb_conn *b)
{
	if (a->af != b->af || a->proto != b->proto || a->dport != b->dport ||
	    a->cport != b->cport)
		return false;
	if (a->af == AF_INET)
		return a->v4.daddr == b->v4.daddr && a->v4.caddr == b->v4.caddr;
	return ipv6_addr_equal(&a->v6.daddr, &b->v6.daddr) &&
	       ipv6_addr_equal(&a->v6.caddr, &b->v6.caddr);
}

/* As same_key(), for L4LB_CONN_LOCAL. */
static __always_inline bool same_local(const struct l4lb_conn *conn,
				       const struct l4lb_flow *flow, u8 af)
{
	if (conn->af != af || conn->proto != flow->proto ||
	    conn->dport != flow->sport || conn->local.port != flow->dport)
		return false;
	if (af == AF_INET)
		return conn->v4.daddr == flow->saddr.ip &&
		       conn->local.addr.ip == flow->daddr.ip;
	return ipv6_addr_equal(&conn->v6.daddr, &flow->saddr.in6) &&
	       ipv6_addr_equal(&conn->local.addr.in6, &flow->daddr.in6);
}

#endif /* _L4LB_CONN_SLOT_H */

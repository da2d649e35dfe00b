/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hashes of packets that had no connection at ingress.  The stack looks the same
 * packet up again, and the keyed hash is most of the cost of a lookup.
 *
 * Drivers hand packets over in batches, which pass ingress before the first of them
 * reaches the stack.  So each CPU keeps several hashes, one for each place; a later packet
 * with the same place takes it.  A hash depends on the flow and on the table's key
 * alone, so none is ever out of date.
 */
#ifndef _L4LB_CONN_MISSED_H
#define _L4LB_CONN_MISSED_H

#include <net/ipv6.h>

#include "base/flow.h"
#include "conn/table.h"

#define L4LB_CONN_MISSED	32	/* four batches as napi_gro_receive() makes them */

/**
 * struct l4lb_conn_missed - flows whose hash is known
 * @flow: each with its hash; 0: none
 */
struct l4lb_conn_missed {
	struct l4lb_flow	flow[L4LB_CONN_MISSED];
};

/* BH off. */
static __always_inline struct l4lb_flow *
missed_at(const struct l4lb_conn_table *table, const struct l4lb_flow *flow)
{
	const u16 ports = (__force u16)(flow->sport ^ flow->dport);

	return &this_cpu_ptr(table->missed)->flow[(ports ^ ports >> 8) % L4LB_CONN_MISSED];
}

/* Keeps the hash of @flow, for which l4lb_conn_find_here() has found nothing.  RCU, BH off. */
static __always_inline void l4lb_conn_keep_missed(const struct l4lb_net *ln,
						  const struct l4lb_flow *flow)
{
	if (likely(flow->hash))
		*missed_at(rcu_dereference(ln->conns), flow) = *flow;
}

/* The hash of @flow, which is of family @af; 0: it is not kept.  BH off. */
static __always_inline u64 l4lb_conn_missed_hash(const struct l4lb_conn_table *table,
						 const struct l4lb_flow *flow, u8 af)
{
	const struct l4lb_flow *kept = missed_at(table, flow);

	if (kept->sport != flow->sport || kept->dport != flow->dport ||
	    kept->af != af || kept->proto != flow->proto)
		return 0;
	if (af == AF_INET)
		return kept->saddr.ip == flow->saddr.ip &&
		       kept->daddr.ip == flow->daddr.ip ? kept->hash : 0;
	return ipv6_addr_equal(&kept->saddr.in6, &flow->saddr.in6) &&
	       ipv6_addr_equal(&kept->daddr.in6, &flow->daddr.in6) ? kept->hash : 0;
}

#endif /* _L4LB_CONN_MISSED_H */

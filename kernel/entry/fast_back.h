/* SPDX-License-Identifier: GPL-2.0 */
/* Ways back: how replies take the fast path. */
#ifndef _L4LB_FAST_BACK_H
#define _L4LB_FAST_BACK_H

#include "entry/fast.h"
#include "service/route.h"

/**
 * struct l4lb_fast_hop - where a route leads
 * @ifindex: device
 * @family: of @gateway; 0: there is no gateway
 * @gateway: its address
 */
struct l4lb_fast_hop {
	int			ifindex;
	u8			family;
	union nf_inet_addr	gateway;
};

/**
 * struct l4lb_fast_back - a device by which replies come in, and the route that
 * the stack chose for them
 * @dst: the route, with a reference; NULL: it has ended
 * @cookie: for dst_check()
 * @device: serial of the device
 * @number: of this way; connections store it
 * @hop: where the route leads, or led
 * @key: what all copies of the route have in common
 * @node: in l4lb_fast.ways
 * @rest: in l4lb_fast.resting, after the end
 * @ended: when that was, in jiffies
 * @rcu: to free it
 *
 * It does not change, except that it ends.  So a connection with its number
 * takes this very route or, once that has ended, looks for another one.
 */
struct l4lb_fast_back {
	struct dst_entry	*dst;
	u32			cookie;
	u32			device;
	u16			number;
	struct l4lb_fast_hop	hop;
	const void		*key;
	struct hlist_node	node;
	struct list_head	rest;
	unsigned long		ended;
	struct rcu_head		rcu;
};

static_assert(L4LB_CONN_BACK + L4LB_FAST_BACK_BITS == 32);

/* RCU, BH off from here on. */

/* The way of @conn's replies; NULL: none, or its number is in use no more. */
static inline const struct l4lb_fast_back *
l4lb_fast_back_of(const struct l4lb_fast *fast, const struct l4lb_conn *conn)
{
	u32 number = (u32)atomic_read(&conn->flags) >> L4LB_CONN_BACK;
	const struct l4lb_fast_page *page =
		fast->pages[number >> L4LB_FAST_PAGE_BITS];

	/* The page is older than the number; the first page has number 0. */
	return rcu_dereference(page->back[number &
					  ((1 << L4LB_FAST_PAGE_BITS) - 1)]);
}

/* Its route; NULL if that has ended. */
static inline struct dst_entry *
l4lb_fast_back_dst(const struct l4lb_fast_back *back)
{
	struct dst_entry *dst = READ_ONCE(back->dst);

	return likely(dst && l4lb_dst_valid(dst, back->cookie)) ?
	       dst : NULL;
}

/* The number for replies that come in by @device and leave by @dst.  0: there
 * is none left, or no memory.
 */
u16 l4lb_fast_back_number(struct l4lb_fast *fast, struct dst_entry *dst, u8 af,
			  u32 device);

void l4lb_fast_back_store(struct l4lb_conn *conn, u16 number);

/* @conn's way has ended: does the reply @skb still go the same way? */
struct dst_entry *l4lb_fast_back_renew(struct l4lb_fast *fast,
				       struct l4lb_conn *conn,
				       struct sk_buff *skb,
				       const struct l4lb_fast_back *back);

/* From here on: may sleep or not. */

/* End the ways that leave by @dev; NULL: all. */
void l4lb_fast_back_flush(struct l4lb_fast *fast,
			  const struct net_device *dev);
int l4lb_fast_back_init(struct l4lb_fast *fast);
void l4lb_fast_back_free(struct l4lb_fast *fast);

#endif /* _L4LB_FAST_BACK_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* How a packet on the fast path leaves: its route and its next hop.  RCU, BH off. */
#ifndef _L4LB_FAST_EXIT_H
#define _L4LB_FAST_EXIT_H

#include "base/stats.h"
#include "entry/fast_back.h"
#include "entry/fast_device.h"
#include "service/route.h"

/**
 * struct l4lb_fast_exit - how a packet leaves
 * @dst: its route
 * @route: the same, of a request; NULL for a reply
 * @neigh: its next hop
 * @len: bytes of the IP packet, before it is wrapped
 * @skip_cache: the neighbour's cached header has another family
 * @reply: it comes from a real server
 * @begun: it has begun its connection, and set its state
 */
struct l4lb_fast_exit {
	struct dst_entry	*dst;
	struct l4lb_route	*route;
	struct neighbour	*neigh;
	unsigned int		len;
	bool			skip_cache;
	bool			reply;
	bool			begun;
};

/* A neighbour that is not resolved or has failed is left to the stack. */
static __always_inline bool
l4lb_fast_take_neigh(struct l4lb_fast_exit *exit, u8 af,
		     struct neighbour *neigh)
{
	exit->skip_cache = af == AF_INET &&
			   dst_rtable(exit->dst)->rt_gw_family == AF_INET6;
	exit->neigh = neigh;
	return neigh && READ_ONCE(neigh->nud_state) & NUD_VALID;
}

static __always_inline enum l4lb_fast_count
l4lb_fast_request_exit(const struct l4lb_conn *conn, struct l4lb_fast_exit *exit)
{
	exit->route = l4lb_route_get(conn->server, conn->method);
	if (IS_ERR(exit->route) || unlikely(exit->route->local))
		return L4LB_SLOW_ROUTE;
	exit->dst = exit->route->dst;
	return l4lb_fast_take_neigh(exit, exit->route->af,
				    l4lb_route_neigh(conn->server->ln, exit->route)) ?
	       L4LB_FAST_SENT : L4LB_SLOW_ROUTE;
}

/* @skb: the reply, to find a route again that has ended; NULL: that is not done. */
static __always_inline enum l4lb_fast_count
l4lb_fast_reply_exit(struct sk_buff *skb, struct l4lb_conn *conn,
		     const struct l4lb_fast_device *d, u8 af,
		     struct l4lb_fast_exit *exit)
{
	const union nf_inet_addr client = l4lb_conn_client(conn);
	const struct l4lb_fast_back *back;

	smp_rmb();	/* the term first; pairs with l4lb_fast_admit() */
	back = l4lb_fast_back_of(d->ln->fast, conn);
	if (unlikely(!back || back->device != d->serial))
		return L4LB_SLOW_ADMIT;
	exit->route = NULL;
	exit->dst = l4lb_fast_back_dst(back);
	if (unlikely(!exit->dst) && skb)
		exit->dst = l4lb_fast_back_renew(d->ln->fast, conn, skb, back);
	return likely(exit->dst) &&
	       l4lb_fast_take_neigh(exit, af, l4lb_neigh_of(exit->dst, af, &client)) ?
	       L4LB_FAST_SENT : L4LB_SLOW_ROUTE;
}

/* Does the route lead elsewhere than to a device's wire? */
static inline bool l4lb_fast_is_wrapped(const struct l4lb_fast_exit *exit,
					const struct l4lb_net *ln)
{
	if (unlikely(l4lb_fast_has_ipsec(ln->net)))
		return true;
	return !(exit->route && exit->route->plain) &&
	       (exit->dst->lwtstate || dst_xfrm(exit->dst));
}

#endif /* _L4LB_FAST_EXIT_H */

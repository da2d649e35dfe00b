// SPDX-License-Identifier: GPL-2.0
/*
 * Full NAT: a real server sees an address of this host as its client, so it answers
 * here, whatever its routes are.  What nat.c does for the destination of requests is
 * done for their source, too, and undone for replies:
 *
 *	client -> VIP	 becomes  local end -> real server	see nat.c
 *	VIP -> client	 becomes  real server -> local end	here
 *
 * A reply comes to LOCAL_IN, and is sent from there as requests are.
 */
#include "forward/full_nat.h"

#include <linux/netfilter.h>
#include <net/ip6_route.h>
#include <net/route.h>

#include "base/drop.h"
#include "conn/lookup.h"
#include "conn/state.h"
#include "forward/large_reply.h"
#include "forward/nat.h"
#include "forward/send.h"
#include "service/account.h"

/* The way to the client; with IPsec, if a policy asks for it. */
static void find_route(struct l4lb_route *rt, const struct sk_buff *skb,
		       const struct l4lb_flow *flow, struct net *net)
{
	if (flow->af == AF_INET) {
		struct flowi4 fl4 = {
			.saddr		= flow->saddr.ip,
			.daddr		= flow->daddr.ip,
			.fl4_sport	= flow->sport,
			.fl4_dport	= flow->dport,
			.flowi4_mark	= skb->mark,
			.flowi4_proto	= flow->proto,
			.flowi4_flags	= FLOWI_FLAG_ANYSRC,
		};
		struct rtable *route = ip_route_output_flow(net, &fl4, NULL);

		rt->dst = &route->dst;
		rt->local = !IS_ERR(route) && route->rt_flags & RTCF_LOCAL;
	} else {
		struct flowi6 fl6 = {
			.saddr		= flow->saddr.in6,
			.daddr		= flow->daddr.in6,
			.fl6_sport	= flow->sport,
			.fl6_dport	= flow->dport,
			.flowi6_mark	= skb->mark,
			.flowi6_proto	= flow->proto,
			.flowi6_flags	= FLOWI_FLAG_ANYSRC,
		};

		rt->dst = ip6_dst_lookup_flow(net, NULL, &fl6, NULL);
		rt->local = !IS_ERR(rt->dst) &&
			    dst_rt6_info(rt->dst)->rt6i_flags & RTF_LOCAL;
	}
}

/* The packet has its new ends, and leaves with the reference on @rt. */
static unsigned int send(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			 const struct l4lb_conn *conn, const struct l4lb_route *rt)
{
	bool in = pkt->hook == NF_INET_LOCAL_IN;

	l4lb_forward_mark(skb, conn, true);
	if (in)
		skb_orphan(skb);
	if (in && rt->local) {		/* it is being delivered */
		dst_release(rt->dst);
		return NF_ACCEPT;
	}
	skb_clear_tstamp(skb);
	skb_dst_drop(skb);
	skb_dst_set(skb, rt->dst);
	if (!in)
		return NF_ACCEPT;
	l4lb_forward_send(skb, pkt, l4lb_conn_net(conn)->net);
	return NF_STOLEN;
}

unsigned int l4lb_full_nat_back(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				const struct l4lb_conn *conn, unsigned int quoted)
{
	const struct l4lb_flow request = l4lb_conn_flow(conn);
	const struct l4lb_flow reply = l4lb_flow_inverse(&request);
	struct l4lb_net *ln = l4lb_conn_net(conn);
	struct l4lb_route rt = { };
	unsigned int verdict;

	find_route(&rt, skb, &reply, ln->net);
	if (IS_ERR(rt.dst)) {
		l4lb_forward_by(skb, pkt, ln,
				ERR_PTR(l4lb_route_error(PTR_ERR(rt.dst))), &verdict);
		return verdict;
	}
	if (!l4lb_forward_by(skb, pkt, ln, &rt, &verdict) ||
	    (!rt.local && !l4lb_forward_fits(skb, pkt, ln, l4lb_dst_mtu(rt.dst))))
		goto release;
	if (l4lb_nat_both(skb, pkt, quoted, &reply)) {
		l4lb_drop(ln, L4LB_DROP_MEMORY);
		goto release;
	}
	return send(skb, pkt, conn, &rt);

release:
	dst_release(rt.dst);
	return verdict;
}

int l4lb_full_nat_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			struct l4lb_net *ln)
{
	struct l4lb_conn *conn = READ_ONCE(ln->snat) ?
				 l4lb_conn_find_local(ln, &pkt->flow) : NULL;

	if (!conn)
		return -ENOENT;
	l4lb_account_out(conn->server, skb->len);
	l4lb_large_reply(skb, pkt, conn);
	l4lb_state_packet(conn, pkt, true);
	return l4lb_full_nat_back(skb, pkt, conn, 0);
}

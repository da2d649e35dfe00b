// SPDX-License-Identifier: GPL-2.0
/*
 * Bypass: the packet is forwarded to its own destination address, as if no
 * service had matched.  Transparent caches use this while no cache server is
 * available.
 *
 * The route depends on the packet, so it is not cached.
 */
#include "forward/bypass.h"

#include <net/ip6_route.h>
#include <net/route.h>

#include "base/drop.h"
#include "forward/send.h"

static struct dst_entry *lookup(struct net *net, const struct l4lb_flow *flow,
				bool *local)
{
	struct flowi4 fl4 = { .daddr = flow->daddr.ip };
	struct flowi6 fl6 = { .daddr = flow->daddr.in6 };
	struct dst_entry *dst;
	struct rtable *rt;

	if (flow->af == AF_INET) {
		rt = ip_route_output_key(net, &fl4);
		if (IS_ERR(rt))
			return ERR_PTR(l4lb_route_error(PTR_ERR(rt)));
		*local = rt->rt_flags & RTCF_LOCAL;
		return &rt->dst;
	}
	dst = ip6_route_output(net, NULL, &fl6);
	if (dst->error) {
		dst_release(dst);
		return ERR_PTR(-EHOSTUNREACH);
	}
	*local = dst_rt6_info(dst)->rt6i_flags & RTF_LOCAL;
	return dst;
}

/* The destination is this host: the packet would loop for ever. */
static unsigned int stop(const struct l4lb_net *ln, struct dst_entry *dst)
{
	dst_release(dst);
	l4lb_drop(ln, L4LB_DROP_NO_ROUTE);
	return NF_DROP;
}

unsigned int l4lb_bypass_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn)
{
	struct l4lb_net *ln = l4lb_conn_net(conn);
	struct l4lb_route rt = { };
	unsigned int verdict;

	rt.dst = lookup(ln->net, &pkt->flow, &rt.local);
	if (IS_ERR(rt.dst)) {
		l4lb_forward_by(skb, pkt, ln, ERR_CAST(rt.dst), &verdict);
		return verdict;
	}
	if (rt.local)
		return stop(ln, rt.dst);
	if (!l4lb_forward_by(skb, pkt, ln, &rt, &verdict))
		goto release;
	if (!l4lb_forward_fits(skb, pkt, ln, l4lb_dst_mtu(rt.dst)))
		goto release;
	l4lb_forward_prepare(skb, pkt, conn, &rt);
	skb_dst_set(skb, rt.dst);	/* takes our reference */
	l4lb_forward_send(skb, pkt, ln->net);
	return NF_STOLEN;

release:
	dst_release(rt.dst);
	return verdict;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Direct routing: the packet is sent to the real server's link address with its
 * addresses and ports unchanged.  The real server has the VIP on an interface
 * that answers no ARP, and replies straight to the client.
 */
#include "forward/direct.h"

#include "forward/send.h"

unsigned int l4lb_direct_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn)
{
	const struct l4lb_route *rt;
	unsigned int verdict;

	rt = l4lb_forward_route(skb, pkt, conn, &verdict);
	if (!rt)
		return verdict;
	if (rt->local)
		return NF_ACCEPT;
	if (!l4lb_forward_fits(skb, pkt, l4lb_conn_net(conn),
			       l4lb_dst_mtu(rt->dst)))
		return NF_DROP;
	l4lb_forward_prepare(skb, pkt, conn, rt);
	l4lb_forward_send(skb, pkt, l4lb_conn_net(conn)->net);
	return NF_STOLEN;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * AH and ESP have no ports and are not scheduled.  They follow the client's key
 * exchange: the connection between UDP ports 500 of the same client and VIP.
 * They use its forwarding method and keep it alive.  Without such a connection
 * they go to the local stack.
 */
#include "forward/ipsec.h"

#include "base/drop.h"
#include "conn/lookup.h"
#include "forward/forward.h"
#include "forward/nat.h"
#include "forward/send.h"
#include "service/account.h"
#include "service/server_table.h"

#define PORT_IKE	500

static struct l4lb_flow ike_flow(const struct l4lb_flow *flow)
{
	struct l4lb_flow ike = *flow;

	ike.proto = IPPROTO_UDP;
	ike.sport = htons(PORT_IKE);
	ike.dport = htons(PORT_IKE);
	ike.hash = 0;
	return ike;
}

/**
 * l4lb_ipsec_in() - an AH or ESP packet on its way to a VIP
 * @skb: the packet
 * @pkt: the packet, parsed up to its AH or ESP header
 * @ln: namespace
 *
 * Context: RCU, BH off.  Return: netfilter verdict.
 */
unsigned int l4lb_ipsec_in(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   struct l4lb_net *ln)
{
	struct l4lb_flow ike = ike_flow(&pkt->flow);
	struct l4lb_conn *conn = l4lb_conn_find_in(ln, &ike);

	if (!conn)
		return NF_ACCEPT;
	if (!l4lb_server_available(conn->server)) {
		l4lb_drop(ln, l4lb_server_lack(conn->server));
		return NF_DROP;
	}
	l4lb_account_in(conn->server, skb->len);
	l4lb_conn_touch(conn);
	return l4lb_forward(skb, pkt, conn, 0);
}

/**
 * l4lb_ipsec_out() - an AH or ESP packet on its way to a client
 * @skb: the packet
 * @pkt: the packet, parsed up to its AH or ESP header
 * @ln: namespace
 *
 * Context: RCU, BH off.  Return: netfilter verdict.
 */
unsigned int l4lb_ipsec_out(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			    struct l4lb_net *ln)
{
	struct l4lb_flow ike = ike_flow(&pkt->flow);
	struct l4lb_conn *conn = l4lb_conn_find_out(ln, &ike);

	if (!conn && pkt->hook != NF_INET_LOCAL_IN)
		conn = l4lb_conn_find_passing(ln, &ike);
	if (!conn)
		return NF_ACCEPT;
	l4lb_account_out(conn->server, skb->len);
	l4lb_conn_touch(conn);
	if (conn->method == IP_VS_CONN_F_MASQ)
		return l4lb_nat_reply(skb, pkt, conn, 0);
	l4lb_forward_mark(skb, conn, true);
	return NF_ACCEPT;
}

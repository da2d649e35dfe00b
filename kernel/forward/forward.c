// SPDX-License-Identifier: GPL-2.0
/* Dispatch by the connection's forwarding method. */
#include "forward/forward.h"

#include "forward/bypass.h"
#include "forward/direct.h"
#include "forward/nat.h"
#include "forward/tunnel.h"

unsigned int l4lb_forward(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			  const struct l4lb_conn *conn, unsigned int quoted)
{
	switch (conn->method) {
	case IP_VS_CONN_F_MASQ:
		return l4lb_nat_xmit(skb, pkt, conn, quoted);
	case IP_VS_CONN_F_TUNNEL:
		return l4lb_tunnel_xmit(skb, pkt, conn);
	case IP_VS_CONN_F_DROUTE:
		return l4lb_direct_xmit(skb, pkt, conn);
	case IP_VS_CONN_F_BYPASS:
		return l4lb_bypass_xmit(skb, pkt, conn);
	default:
		if (conn->method == L4LB_FULL_NAT)
			return l4lb_nat_xmit_full(skb, pkt, conn, quoted);
		/* Local node, and undefined method numbers. */
		return NF_ACCEPT;
	}
}

/* SPDX-License-Identifier: GPL-2.0 */
/* The forwarding methods. */
#ifndef _L4LB_FORWARD_H
#define _L4LB_FORWARD_H

#include "conn/conn.h"

/*
 * l4lb_forward() and the methods (l4lb_*_xmit()) return a netfilter verdict.
 * NF_STOLEN: the packet was sent or freed.  NF_ACCEPT: it goes on through this
 * host's stack.  NF_DROP: netfilter frees it.
 * Context: RCU, BH off, skb->data at the network header.
 */

/* Forward a client's packet, or an ICMP error about a reply.  @quoted: offset
 * of the packet that the ICMP error quotes, 0 if it is no error.
 */
unsigned int l4lb_forward(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			  const struct l4lb_conn *conn, unsigned int quoted);

#endif /* _L4LB_FORWARD_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Replies of connections with full NAT, which come to their local end. */
#ifndef _L4LB_FULL_NAT_H
#define _L4LB_FULL_NAT_H

#include "conn/conn.h"

/* RCU, BH off.  A packet for a local end goes on to its client.  Return: the verdict, or
 * -ENOENT if it is none.
 */
int l4lb_full_nat_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			struct l4lb_net *ln);

/* Translates a reply of @conn, or (@quoted) an ICMP error about a request, and sends it.
 * Return: the verdict.
 */
unsigned int l4lb_full_nat_back(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				const struct l4lb_conn *conn, unsigned int quoted);

#endif /* _L4LB_FULL_NAT_H */

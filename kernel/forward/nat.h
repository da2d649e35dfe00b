/* SPDX-License-Identifier: GPL-2.0 */
/* Forwarding by NAT; verdicts as in forward.h. */
#ifndef _L4LB_NAT_H
#define _L4LB_NAT_H

#include "conn/conn.h"

unsigned int l4lb_nat_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   const struct l4lb_conn *conn, unsigned int quoted);

/* The same with full NAT: the source becomes the local end. */
unsigned int l4lb_nat_xmit_full(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				const struct l4lb_conn *conn, unsigned int quoted);

/* Both ends become those of @to; with @quoted, of an ICMP error on that way.  0 or a
 * negative errno.
 */
int l4lb_nat_both(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		  unsigned int quoted, const struct l4lb_flow *to);

/* For the fast path: only change the packet.  0 or -ENOMEM. */
int l4lb_nat_rewrite(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_conn *conn, bool reply);

/* Translate a real server's reply, or (@quoted) an ICMP error about a request:
 * its source becomes the VIP.  NF_ACCEPT: it continues on its way.
 */
unsigned int l4lb_nat_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			    const struct l4lb_conn *conn, unsigned int quoted);

#endif /* _L4LB_NAT_H */

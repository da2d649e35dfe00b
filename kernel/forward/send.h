/* SPDX-License-Identifier: GPL-2.0 */
/* Steps shared by the forwarding methods.  RCU, BH off, skb->data at the
 * network header.
 */
#ifndef _L4LB_SEND_H
#define _L4LB_SEND_H

#include "conn/conn.h"
#include "service/route.h"

/* Find the route and, unless the real server is this host, decrement the TTL.
 * NULL: return *verdict; the drop was counted and any ICMP error was sent.
 */
const struct l4lb_route *l4lb_forward_route(struct sk_buff *skb,
					    const struct l4lb_pkt *pkt,
					    const struct l4lb_conn *conn,
					    unsigned int *verdict);

/* The same with the route @rt, which may be NULL.  False: return *verdict. */
bool l4lb_forward_by(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_net *ln, const struct l4lb_route *rt,
		     unsigned int *verdict);

/* Does the packet fit into @mtu?  If not, an ICMP error was sent. */
bool l4lb_forward_fits(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       const struct l4lb_net *ln, unsigned int mtu);

/* Detach the packet from its way in: new route, no receiving socket. */
void l4lb_forward_prepare(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			  const struct l4lb_conn *conn,
			  const struct l4lb_route *rt);

/* Send it: LOCAL_OUT, POST_ROUTING, neighbour.  Consumes the skb. */
void l4lb_forward_send(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct net *net);

/* Mark the packet as handled: our hooks skip it from now on, and conntrack does
 * unless @conn is tracked.  @reply: it comes from the real server.
 */
void l4lb_forward_mark(struct sk_buff *skb, const struct l4lb_conn *conn,
		       bool reply);

/* ICMP "port unreachable" to the sender. */
void l4lb_icmp_no_port(struct sk_buff *skb, const struct l4lb_pkt *pkt);

#endif /* _L4LB_SEND_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* What the forwarding methods share.  RCU, BH off, skb->data at the network
 * header.
 */
#ifndef _L4LB_SEND_H
#define _L4LB_SEND_H

#include "conn/conn.h"
#include "service/route.h"

/* Find the route and, unless the real server is this host, take one off the
 * TTL.  NULL: *verdict says what becomes of the packet; errors were sent.
 */
const struct l4lb_route *l4lb_forward_route(struct sk_buff *skb,
					    const struct l4lb_pkt *pkt,
					    const struct l4lb_conn *conn,
					    unsigned int *verdict);

/* The same by @rt, which may be NULL.  False: see *verdict. */
bool l4lb_forward_by(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_net *ln, const struct l4lb_route *rt,
		     unsigned int *verdict);

/* Does it fit into @mtu?  If not, the sender was told. */
bool l4lb_forward_fits(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       const struct l4lb_net *ln, unsigned int mtu);

/* Leave the path the packet came by: new route, no socket. */
void l4lb_forward_prepare(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			  const struct l4lb_conn *conn,
			  const struct l4lb_route *rt);

/* Send it: LOCAL_OUT, POST_ROUTING, neighbour.  Consumes the skb. */
void l4lb_forward_send(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct net *net);

/* Ours: no handler looks at it again, and conntrack only if @conn is tracked.
 * @reply: it comes from the real server.
 */
void l4lb_forward_mark(struct sk_buff *skb, const struct l4lb_conn *conn,
		       bool reply);

/* ICMP "port unreachable" to the sender. */
void l4lb_icmp_no_port(struct sk_buff *skb, const struct l4lb_pkt *pkt);

#endif /* _L4LB_SEND_H */

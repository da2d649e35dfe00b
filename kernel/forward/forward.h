/* SPDX-License-Identifier: GPL-2.0 */
/* The forwarding methods, and what they share. */
#ifndef _L4LB_FORWARD_H
#define _L4LB_FORWARD_H

#include "conn/conn.h"
#include "conn/conntrack.h"
#include "service/route.h"

/*
 * Every function here returns a netfilter verdict.  NF_STOLEN: the packet is
 * on its way (or freed); NF_ACCEPT: it goes on through this host's stack;
 * NF_DROP: netfilter frees it.  RCU, BH off, skb->data at the network header.
 */

/* Forward a client's packet, or an ICMP error about a reply (@quoted is then
 * the offset of the packet it quotes, otherwise 0), by the connection's method.
 */
unsigned int l4lb_forward(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			  const struct l4lb_conn *conn, unsigned int quoted);

unsigned int l4lb_nat_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   const struct l4lb_conn *conn, unsigned int quoted);
unsigned int l4lb_direct_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn);
unsigned int l4lb_tunnel_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn);
unsigned int l4lb_bypass_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn);

/* For the fast path: only change the packet.  0 or -ENOMEM. */
int l4lb_nat_rewrite(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_conn *conn, bool reply);
int l4lb_tunnel_wrap(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_conn *conn,
		     const struct l4lb_route *rt);
/* Bytes that it would add. */
unsigned int l4lb_tunnel_room(const struct sk_buff *skb,
			      const struct l4lb_conn *conn);

/* A real server's reply, or (@quoted) an ICMP error about a request: give it
 * the VIP's address back.  NF_ACCEPT: it goes on where it was going.
 */
unsigned int l4lb_nat_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			    const struct l4lb_conn *conn, unsigned int quoted);

/* Steps the methods share (forward.c). */

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

/* ICMP "port unreachable" and the like to the sender. */
void l4lb_icmp_reject(struct sk_buff *skb, const struct l4lb_pkt *pkt, u8 type,
		      u8 code, u32 info);
void l4lb_icmp_no_port(struct sk_buff *skb, const struct l4lb_pkt *pkt);

/* ICMP errors (icmp.c): about replies, about requests, about our tunnels. */
unsigned int l4lb_icmp_in(struct sk_buff *skb, struct l4lb_pkt *pkt,
			  struct l4lb_net *ln);
unsigned int l4lb_icmp_out(struct sk_buff *skb, struct l4lb_pkt *pkt,
			   struct l4lb_net *ln);

/* AH and ESP (ipsec.c). */
unsigned int l4lb_ipsec_in(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   struct l4lb_net *ln);
unsigned int l4lb_ipsec_out(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			    struct l4lb_net *ln);

/* Replies to one-packet scheduling (one_packet.c). */
bool l4lb_one_packet_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   struct l4lb_net *ln, const struct l4lb_flow *flow,
			   unsigned int quoted, unsigned int *verdict);

/* Scheduling (schedule.c). */
bool l4lb_flow_may_start(const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_schedule(struct l4lb_service *svc,
				const struct l4lb_flow *flow,
				struct l4lb_conn *once,
				enum l4lb_drop *reason);

/* Persistence (persist.c): the connection of a new flow of @svc.  NULL: none;
 * *reason says why.
 */
struct l4lb_conn *l4lb_persist_schedule(struct l4lb_service *svc,
					const struct l4lb_flow *flow,
					enum l4lb_drop *reason);

#endif /* _L4LB_FORWARD_H */

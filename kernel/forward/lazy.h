/* SPDX-License-Identifier: GPL-2.0 */
/* Services with conn-state lazy: a connection has no entry before a proof.  RCU, BH off. */
#ifndef _L4LB_LAZY_H
#define _L4LB_LAZY_H

#include "conn/conn.h"

static inline bool l4lb_lazy_wanted(const struct l4lb_service *svc)
{
	return unlikely(READ_ONCE(svc->policy.conn_state) == L4LB_SERVICE_STATE_LAZY);
}

/* The real server of @flow, which has no connection; NULL: conn-state lazy has no effect
 * for @skb, which was seen at @hook.
 */
struct l4lb_server *l4lb_lazy_server(struct l4lb_service *svc,
				     const struct sk_buff *skb,
				     const struct l4lb_flow *flow, u8 hook);
struct l4lb_conn *l4lb_lazy_request(struct l4lb_server *server,
				    const struct l4lb_pkt *pkt,
				    struct l4lb_conn *once);
struct l4lb_conn *l4lb_lazy_reply(struct l4lb_net *ln, struct sk_buff *skb,
				  const struct l4lb_pkt *pkt, struct l4lb_conn *once);

/* An ICMP error on its way to a VIP, or to a client, about a packet without a connection.
 * @flow: client to VIP, or real server to client.  Return: verdict, or -ENOENT if the error
 * is not about a lazy service's packet.
 */
int l4lb_lazy_error_in(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct l4lb_net *ln, const struct l4lb_flow *flow,
		       unsigned int quoted);
int l4lb_lazy_error_out(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			struct l4lb_net *ln, const struct l4lb_flow *flow,
			unsigned int quoted);

#endif /* _L4LB_LAZY_H */

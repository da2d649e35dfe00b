/* SPDX-License-Identifier: GPL-2.0 */
/* Telling the ends of a connection that it is over. */
#ifndef _L4LB_RESET_H
#define _L4LB_RESET_H

#include "conn/conn.h"
#include "l4lb.h"

/* Packet path: RCU, BH off. */
void l4lb_reset_note(struct l4lb_conn *conn, const struct sk_buff *skb,
		     const struct l4lb_pkt *pkt, unsigned int len);
void l4lb_reset_both(struct l4lb_conn *conn);
/* Refuse a packet that wants to open a connection which no service takes. */
void l4lb_reset_refuse(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct l4lb_net *ln);

/* Any context, RCU: @conn has expired and is about to be killed. */
void l4lb_reset_idle(struct l4lb_conn *conn);

static inline bool l4lb_reset_wanted(const struct l4lb_conn *conn)
{
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	return svc && READ_ONCE(svc->policy.on_idle) == L4LB_IDLE_RESET;
}

/* Note a client's packet, if the service wants resets of idle connections.
 * @len: the length of the IP packet, without padding.
 */
static inline void l4lb_reset_watch(struct l4lb_conn *conn,
				    const struct sk_buff *skb,
				    const struct l4lb_pkt *pkt,
				    unsigned int len)
{
	if (unlikely(l4lb_reset_wanted(conn)))
		l4lb_reset_note(conn, skb, pkt, len);
}

#endif /* _L4LB_RESET_H */

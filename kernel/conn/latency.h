/* SPDX-License-Identifier: GPL-2.0 */
/* What a connection tells about the latency of its real server, see latency.c. */
#ifndef _L4LB_CONN_LATENCY_H
#define _L4LB_CONN_LATENCY_H

#include "conn/conn.h"

/* RCU, BH off.  For a connection with %L4LB_USE_LATENCY. */
void l4lb_latency_note_request(struct l4lb_conn *conn, const struct sk_buff *skb,
			       const struct l4lb_pkt *pkt);
void l4lb_latency_note_reply(struct l4lb_conn *conn, const struct sk_buff *skb,
			     const struct l4lb_pkt *pkt);
/* An ICMP error said that the real server's port is closed, or the like. */
void l4lb_latency_note_error(struct l4lb_conn *conn);
bool l4lb_latency_has_asked(const struct l4lb_conn *conn);
/* RCU, any context.  @conn is dead. */
void l4lb_latency_note_end(struct l4lb_conn *conn, enum l4lb_end why);

/* Takes note of a client's packet.  Return: @conn may not take the fast path yet,
 * where its next packet would not be seen.  RCU, BH off.
 */
static inline bool l4lb_latency_request(struct l4lb_conn *conn,
					const struct sk_buff *skb,
					const struct l4lb_pkt *pkt)
{
	if (!l4lb_conn_has_use(conn, L4LB_USE_LATENCY))
		return false;
	l4lb_latency_note_request(conn, skb, pkt);
	return !l4lb_latency_has_asked(conn);
}

#endif /* _L4LB_CONN_LATENCY_H */

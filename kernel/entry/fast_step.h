/* SPDX-License-Identifier: GPL-2.0 */
/* A packet on the fast path and its connection, wherever the packet is met: may it
 * take that path, and what does the connection note?  RCU, BH off.
 */
#ifndef _L4LB_FAST_STEP_H
#define _L4LB_FAST_STEP_H

#include "conn/count.h"
#include "conn/state.h"
#include "entry/fast_admit.h"
#include "entry/fast_device.h"
#include "service/account.h"
#include "sync/send.h"

/* Does this packet leave the connection in its state?  A segment with ACK but
 * no SYN, FIN or RST does, between the handshake and the last FIN.
 */
static __always_inline bool
l4lb_fast_keeps_state(const struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		      bool reply)
{
	if (pkt->flow.proto == IPPROTO_UDP)
		return true;
	if ((pkt->tcp & (L4LB_TCP_FLAG_ACK | L4LB_TCP_FLAG_SYN |
			 L4LB_TCP_FLAG_FIN | L4LB_TCP_FLAG_RST)) !=
	    L4LB_TCP_FLAG_ACK)
		return false;
	/* The first answer makes it safe from a flood, and is waited for. */
	if (reply && unlikely(!l4lb_conn_test(conn, L4LB_CONN_ANSWERED)))
		return false;
	return BIT(READ_ONCE(conn->state)) & (BIT(L4LB_TCP_ESTABLISHED) |
					      BIT(L4LB_TCP_FIN_WAIT) |
					      BIT(L4LB_TCP_CLOSE_WAIT));
}

/* Forwarding methods of the fast path: not local node, not bypass. */
static inline bool l4lb_fast_forwards(const struct l4lb_conn *conn)
{
	return BIT(conn->method) & (BIT(IP_VS_CONN_F_MASQ) | BIT(IP_VS_CONN_F_TUNNEL) |
				    BIT(IP_VS_CONN_F_DROUTE));
}

/* May another server get the datagram?  See moves_on() in hook.c. */
static inline bool l4lb_fast_may_move(const struct l4lb_conn *conn,
				      const struct l4lb_service *svc)
{
	return READ_ONCE(conn->server->drains) &&
	       conn->proto == IPPROTO_UDP &&
	       READ_ONCE(svc->policy.on_drain) == L4LB_DRAIN_MOVE;
}

/* Has the packet that opens it just begun this connection, in XDP or
 * l4lb_fast_begin()?  Others may need a new one, see port_reused() in hook.c.
 */
static inline bool l4lb_fast_has_begun(const struct l4lb_conn *conn)
{
	return !l4lb_conn_packets(conn) &&
	       BIT(READ_ONCE(conn->state)) & (BIT(L4LB_TCP_SYN_RECV) |
					      BIT(L4LB_TCP_SYNACK));
}

/* The stack gets each SYN-ACK and, while no service asks to begin connections here, each
 * SYN that somebody may look at, known or not: its lookup is saved.
 */
static __always_inline bool l4lb_fast_leaves_opening(const struct l4lb_net *ln,
						     const struct l4lb_pkt *pkt)
{
	return unlikely(pkt->tcp & L4LB_TCP_FLAG_SYN) &&
	       (pkt->tcp & L4LB_TCP_FLAG_ACK || !l4lb_fast_has_new(ln));
}

/* L4LB_FAST_SENT: the packet may pass. */
static __always_inline enum l4lb_fast_count
l4lb_fast_check_conn(const struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		     const struct l4lb_fast_device *d, bool reply)
{
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	if (unlikely(!svc || !l4lb_server_available(conn->server) ||
		     !l4lb_fast_forwards(conn) ||
		     l4lb_fast_may_move(conn, svc)))
		return L4LB_SLOW_SERVER;
	if (unlikely(l4lb_fast_mode(d->ln, svc) == L4LB_FAST_PATH_OFF ||
		     l4lb_conn_test(conn, L4LB_CONN_TRACKED)))
		return L4LB_SLOW_POLICY;
	if (unlikely(pkt->tcp & L4LB_TCP_FLAG_SYN) && !l4lb_fast_has_begun(conn))
		return L4LB_SLOW_OPENS;
	/* Replies: see l4lb_fast_reply_exit(). */
	if (unlikely(l4lb_fast_term_over(d->ln, conn) ||
		     (!reply && !l4lb_fast_admitted_in(conn, READ_ONCE(d->id)))))
		return L4LB_SLOW_ADMIT;
	return L4LB_FAST_SENT;
}

/* The same for the packet that has just begun @conn: its service allows it, it is admitted,
 * and only its real server may have been removed since.
 */
static __always_inline enum l4lb_fast_count
l4lb_fast_check_first(const struct l4lb_conn *conn)
{
	if (unlikely(!l4lb_server_available(conn->server) || !l4lb_fast_forwards(conn)))
		return L4LB_SLOW_SERVER;
	return unlikely(l4lb_conn_test(conn, L4LB_CONN_TRACKED)) ?
	       L4LB_SLOW_POLICY : L4LB_FAST_SENT;
}

/* Counts a packet of @len bytes that is surely forwarded. */
static __always_inline void
l4lb_fast_account(struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		  unsigned int len, bool reply)
{
	if (reply) {
		l4lb_account_out(conn->server, len);
	} else {
		l4lb_account_in(conn->server, len);
		/* A change of the state announces it by itself. */
		if (l4lb_conn_count_packet(conn) && l4lb_sync_counted(conn) &&
		    l4lb_fast_keeps_state(conn, pkt, false))
			l4lb_sync_due(conn);
	}
}

/* Moves the connection's state and timer on. */
static __always_inline void
l4lb_fast_advance(struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		  bool reply)
{
	if (likely(l4lb_fast_keeps_state(conn, pkt, reply)))
		l4lb_conn_touch(conn);
	else
		l4lb_state_packet(conn, pkt, reply);
}

#endif /* _L4LB_FAST_STEP_H */

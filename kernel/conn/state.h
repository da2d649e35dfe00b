/* SPDX-License-Identifier: GPL-2.0 */
/* Connection states and their timeouts, as tables. */
#ifndef _L4LB_STATE_H
#define _L4LB_STATE_H

#include "conn/conn.h"

/* Tracepoints show the numbers, and programs know them: only ever append a protocol. */
enum l4lb_state {
	L4LB_TCP_NONE,
	L4LB_TCP_ESTABLISHED,
	L4LB_TCP_SYN_SENT,
	L4LB_TCP_SYN_RECV,
	L4LB_TCP_FIN_WAIT,
	L4LB_TCP_TIME_WAIT,
	L4LB_TCP_CLOSE,
	L4LB_TCP_CLOSE_WAIT,
	L4LB_TCP_LAST_ACK,
	L4LB_TCP_LISTEN,
	L4LB_TCP_SYNACK,
	L4LB_TCP_MAX,
	L4LB_UDP = L4LB_TCP_MAX,
	L4LB_SCTP_FIRST,
	L4LB_SCTP_NONE = L4LB_SCTP_FIRST,
	L4LB_SCTP_INIT1,
	L4LB_SCTP_INIT,
	L4LB_SCTP_COOKIE_SENT,
	L4LB_SCTP_COOKIE_REPLIED,
	L4LB_SCTP_COOKIE_WAIT,
	L4LB_SCTP_COOKIE,
	L4LB_SCTP_COOKIE_ECHOED,
	L4LB_SCTP_ESTABLISHED,
	L4LB_SCTP_SHUTDOWN_SENT,
	L4LB_SCTP_SHUTDOWN_RECEIVED,
	L4LB_SCTP_SHUTDOWN_ACK_SENT,
	L4LB_SCTP_REJECTED,
	L4LB_SCTP_CLOSED,
	L4LB_STATE_MAX,
};

/* State of a connection that has not yet seen a packet. */
static inline enum l4lb_state l4lb_state_first(u8 proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return L4LB_TCP_NONE;
	case IPPROTO_SCTP:
		return L4LB_SCTP_NONE;
	default:
		return L4LB_UDP;
	}
}

/* Before @conn is in the table: its state after @pkt, which l4lb_pkt_begins() it. */
void l4lb_state_begin(struct l4lb_conn *conn, const struct l4lb_pkt *pkt);

/* A packet of @conn was seen: next state, its timeout, active or not. */
void l4lb_state_packet(struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		       bool reply);

/* Another director says it is in this state, and lives @timeout jiffies. */
void l4lb_state_follow(struct l4lb_conn *conn, u8 state, bool active,
		       u32 timeout, u32 idle);

/* Jiffies a connection lives in its state without packets.  RCU. */
u32 l4lb_state_timeout(const struct l4lb_conn *conn);

/* As in the column "State": "ESTABLISHED", "UDP", "ASSURED", ... */
const char *l4lb_state_name(const struct l4lb_conn *conn);
/* Is there a state with this name? */
bool l4lb_state_known(const char *name);

void l4lb_timeouts_init(struct l4lb_timeouts *timeouts);

#endif /* _L4LB_STATE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Connection states and their timeouts, as tables. */
#ifndef _L4LB_STATE_H
#define _L4LB_STATE_H

#include "conn.h"

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
};

/* A packet of @conn was seen: next state, its timeout, active or not. */
void l4lb_state_packet(struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		       bool reply);

/* As in the State column: "ESTABLISHED", "UDP", "ASSURED", ... */
const char *l4lb_state_name(const struct l4lb_conn *conn);

void l4lb_timeouts_init(struct l4lb_timeouts *timeouts);

#endif /* _L4LB_STATE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Which connections are announced to other directors, and when. */
#ifndef _L4LB_SYNC_SEND_RULES_H
#define _L4LB_SYNC_SEND_RULES_H

#include "base/net.h"
#include "conn/conn.h"
#include "conn/count.h"
#include "conn/state.h"

/**
 * enum l4lb_send_phase - what a state means to other directors
 * @L4LB_SEND_SILENT: they need not know
 * @L4LB_SEND_NEW: not established yet; if they know the connection, that is an
 *	earlier one from the same port
 * @L4LB_SEND_OPEN: established
 * @L4LB_SEND_CLOSING: one end has closed it
 * @L4LB_SEND_OVER: both have
 */
enum l4lb_send_phase {
	L4LB_SEND_SILENT,
	L4LB_SEND_NEW,
	L4LB_SEND_OPEN,
	L4LB_SEND_CLOSING,
	L4LB_SEND_OVER,
};

/* By enum l4lb_state: enum l4lb_send_phase */
extern const u8 l4lb_send_phases[L4LB_STATE_MAX];

/* @state: enum l4lb_state */
static inline enum l4lb_send_phase l4lb_send_phase_of(u8 state)
{
	return l4lb_send_phases[state];
}

/* A template counts as established. */
static inline enum l4lb_send_phase l4lb_send_phase(const struct l4lb_conn *conn)
{
	return l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ? L4LB_SEND_OPEN :
		l4lb_send_phase_of(READ_ONCE(conn->state));
}

/* RCU. */

/* Is it announced at all? */
bool l4lb_send_allowed(const struct l4lb_conn *conn);
/* Can a record tell it at all? */
bool l4lb_send_tellable(const struct l4lb_conn *conn);
/* Do its records make sense to other directors, also of a copy? */
bool l4lb_send_possible(const struct l4lb_conn *conn);
/* Is it of those that all directors have: established, and announced? */
bool l4lb_send_shared(const struct l4lb_conn *conn);
/* Have other directors a copy of it, which does not end soon by itself? */
bool l4lb_send_known(const struct l4lb_conn *conn);
bool l4lb_send_counts_again(const struct l4lb_conn *conn);
/* Is it announced by the sweep? */
bool l4lb_send_owed(struct l4lb_conn *conn);
/* It was announced. */
void l4lb_send_note(struct l4lb_conn *conn);

/* The last packet that can announce a connection by its number. */
enum { L4LB_SEND_COUNT_MAX = L4LB_CONN_PACKETS_MANY - 1 };

static inline unsigned int l4lb_send_threshold(const struct l4lb_sysctl *sysctl)
{
	return min_t(int, READ_ONCE(sysctl->sync_threshold[0]),
		     L4LB_SEND_COUNT_MAX);
}

/* Is it announced with this packet of its client, by their number? */
static inline bool l4lb_send_counts(const struct l4lb_conn *conn)
{
	const struct l4lb_sysctl *sysctl = &l4lb_conn_net(conn)->sysctl;
	unsigned int period = READ_ONCE(sysctl->sync_threshold[1]);

	if (READ_ONCE(sysctl->sync_refresh_period) ||
	    period - 1 < L4LB_SEND_COUNT_MAX)
		return l4lb_send_counts_again(conn);
	return l4lb_conn_packets(conn) == l4lb_send_threshold(sysctl);
}

#endif /* _L4LB_SYNC_SEND_RULES_H */

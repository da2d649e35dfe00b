// SPDX-License-Identifier: GPL-2.0
/*
 * Connection states as numbers of ip_vs.  A table, because enum l4lb_state may
 * change, and what other directors send and understand may not.
 */
#include "sync/wire_state.h"

#include <linux/in.h>
#include <linux/kernel.h>

#include "conn/state.h"

/* By the number in messages. */
static const u8 tcp_states[] = {
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
};

static const u8 udp_states[] = {
	L4LB_UDP,
};

static const u8 sctp_states[] = {
	L4LB_SCTP_NONE,
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
};

/* The states of @proto; returns their number. */
static size_t states_of(u8 proto, const u8 **states)
{
	switch (proto) {
	case IPPROTO_TCP:
		*states = tcp_states;
		return ARRAY_SIZE(tcp_states);
	case IPPROTO_UDP:
		*states = udp_states;
		return ARRAY_SIZE(udp_states);
	case IPPROTO_SCTP:
		*states = sctp_states;
		return ARRAY_SIZE(sctp_states);
	default:
		return 0;
	}
}

int l4lb_sync_state_of(u8 proto, u16 wire)
{
	const u8 *states;

	return wire < states_of(proto, &states) ? states[wire] : -1;
}

u16 l4lb_sync_state_to(u8 proto, u8 state)
{
	const u8 *states;
	size_t n = states_of(proto, &states);
	size_t i = n ? state - states[0] : 0;

	/* As long as a protocol's states are neighbours in the enum. */
	return i < n && states[i] == state ? i : 0;
}

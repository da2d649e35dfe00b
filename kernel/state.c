// SPDX-License-Identifier: GPL-2.0
/*
 * Connection states.
 *
 * The director is not an end point: it follows TCP from what it sees, which
 * with direct routing and tunnels is the client's half only.  So there are
 * three tables: for the client's packets (in), for the real server's (out),
 * and for the client's when replies take another way (in only).
 *
 * A row is an event, the first of RST, SYN, FIN, ACK that is set; a column
 * the state before it.  A segment without any of these closes.
 */
#include "state.h"

enum event { ON_SYN, ON_FIN, ON_ACK, ON_RST, ON_MAX, ON_NONE = ON_MAX };
enum side { SIDE_IN, SIDE_OUT, SIDE_IN_ONLY, SIDE_MAX };

#define T_NO L4LB_TCP_NONE
#define T_ES L4LB_TCP_ESTABLISHED
#define T_SS L4LB_TCP_SYN_SENT
#define T_SR L4LB_TCP_SYN_RECV
#define T_FW L4LB_TCP_FIN_WAIT
#define T_TW L4LB_TCP_TIME_WAIT
#define T_CL L4LB_TCP_CLOSE
#define T_CW L4LB_TCP_CLOSE_WAIT
#define T_LA L4LB_TCP_LAST_ACK
#define T_LI L4LB_TCP_LISTEN
#define T_SA L4LB_TCP_SYNACK

static const u8 tcp_next[SIDE_MAX][ON_MAX][L4LB_TCP_MAX] = {
	[SIDE_IN] = {
		/*            NO    ES    SS    SR    FW    TW    CL    CW    LA    LI    SA */
		[ON_SYN] = { T_SR, T_ES, T_ES, T_SR, T_SR, T_SR, T_SR, T_SR, T_SR, T_SR, T_SR },
		[ON_FIN] = { T_CL, T_CW, T_SS, T_TW, T_TW, T_TW, T_CL, T_CW, T_LA, T_LI, T_TW },
		[ON_ACK] = { T_ES, T_ES, T_SS, T_ES, T_FW, T_TW, T_CL, T_CW, T_CL, T_LI, T_ES },
		[ON_RST] = { T_CL, T_CL, T_CL, T_SR, T_CL, T_CL, T_CL, T_CL, T_LA, T_LI, T_SR },
	},
	[SIDE_OUT] = {
		/*            NO    ES    SS    SR    FW    TW    CL    CW    LA    LI    SA */
		[ON_SYN] = { T_SS, T_ES, T_SS, T_SR, T_SS, T_SS, T_SS, T_SS, T_SS, T_LI, T_SR },
		[ON_FIN] = { T_TW, T_FW, T_SS, T_TW, T_FW, T_TW, T_CL, T_TW, T_LA, T_LI, T_TW },
		[ON_ACK] = { T_ES, T_ES, T_SS, T_ES, T_FW, T_TW, T_CL, T_CW, T_LA, T_ES, T_ES },
		[ON_RST] = { T_CL, T_CL, T_SS, T_CL, T_CL, T_TW, T_CL, T_CL, T_CL, T_CL, T_CL },
	},
	[SIDE_IN_ONLY] = {
		/*            NO    ES    SS    SR    FW    TW    CL    CW    LA    LI    SA */
		[ON_SYN] = { T_SR, T_ES, T_ES, T_SR, T_SR, T_SR, T_SR, T_SR, T_SR, T_SR, T_SR },
		[ON_FIN] = { T_CL, T_FW, T_SS, T_TW, T_FW, T_TW, T_CL, T_CW, T_LA, T_LI, T_TW },
		[ON_ACK] = { T_ES, T_ES, T_SS, T_ES, T_FW, T_TW, T_CL, T_CW, T_CL, T_LI, T_ES },
		[ON_RST] = { T_CL, T_CL, T_CL, T_SR, T_CL, T_CL, T_CL, T_CL, T_LA, T_LI, T_CL },
	},
};

#undef T_NO
#undef T_ES
#undef T_SS
#undef T_SR
#undef T_FW
#undef T_TW
#undef T_CL
#undef T_CW
#undef T_LA
#undef T_LI
#undef T_SA

static const struct {
	const char	*name;
	u16		timeout;	/* seconds; 0: settable per namespace */
	bool		active;
} states[] = {
	[L4LB_TCP_NONE]		= { "NONE",		2,	false },
	[L4LB_TCP_ESTABLISHED]	= { "ESTABLISHED",	0,	true },
	[L4LB_TCP_SYN_SENT]	= { "SYN_SENT",		120,	true },
	[L4LB_TCP_SYN_RECV]	= { "SYN_RECV",		60,	true },
	[L4LB_TCP_FIN_WAIT]	= { "FIN_WAIT",		0,	false },
	[L4LB_TCP_TIME_WAIT]	= { "TIME_WAIT",	120,	false },
	[L4LB_TCP_CLOSE]	= { "CLOSE",		10,	false },
	[L4LB_TCP_CLOSE_WAIT]	= { "CLOSE_WAIT",	60,	false },
	[L4LB_TCP_LAST_ACK]	= { "LAST_ACK",		30,	false },
	[L4LB_TCP_LISTEN]	= { "LISTEN",		120,	false },
	[L4LB_TCP_SYNACK]	= { "SYNACK",		120,	true },
	[L4LB_UDP]		= { "UDP",		0,	false },
};

void l4lb_timeouts_init(struct l4lb_timeouts *timeouts)
{
	timeouts->tcp = 15 * 60 * HZ;
	timeouts->tcp_fin = 2 * 60 * HZ;
	timeouts->udp = 5 * 60 * HZ;
}

static unsigned int state_timeout(const struct l4lb_net *ln, u8 state)
{
	switch (state) {
	case L4LB_TCP_ESTABLISHED:
		return READ_ONCE(ln->timeouts.tcp);
	case L4LB_TCP_FIN_WAIT:
		return READ_ONCE(ln->timeouts.tcp_fin);
	case L4LB_UDP:
		return READ_ONCE(ln->timeouts.udp);
	default:
		return states[state].timeout * HZ;
	}
}

static u8 tcp_after(u8 state, enum side side, u8 flags)
{
	enum event ev = flags & L4LB_TCP_FLAG_RST ? ON_RST :
			flags & L4LB_TCP_FLAG_SYN ? ON_SYN :
			flags & L4LB_TCP_FLAG_FIN ? ON_FIN :
			flags & L4LB_TCP_FLAG_ACK ? ON_ACK : ON_NONE;

	return ev == ON_NONE ? L4LB_TCP_CLOSE : tcp_next[side][ev][state];
}

static enum side conn_side(const struct l4lb_conn *conn, bool reply)
{
	if (reply)
		return SIDE_OUT;
	return l4lb_conn_test(conn, L4LB_CONN_NO_OUTPUT) ? SIDE_IN_ONLY :
							   SIDE_IN;
}

static void assure(struct l4lb_conn *conn)
{
	if (conn->control &&
	    !l4lb_conn_test(conn->control, L4LB_CONN_ASSURED))
		set_bit(L4LB_CONN_ASSURED, &conn->control->flags);
}

/* Which state follows is decided again under the lock: another CPU may have
 * seen the other direction's packet meanwhile.
 */
static void tcp_change(struct l4lb_conn *conn, u8 flags, bool reply)
{
	u8 next;

	spin_lock_bh(&conn->lock);
	if (!l4lb_conn_test(conn, L4LB_CONN_DEAD)) {
		next = tcp_after(conn->state, conn_side(conn, reply), flags);
		WRITE_ONCE(conn->state, next);
		l4lb_conn_set_active(conn, states[next].active);
		if (next == L4LB_TCP_ESTABLISHED)
			assure(conn);
	}
	spin_unlock_bh(&conn->lock);
}

/**
 * l4lb_state_packet() - a packet of a connection was seen
 * @conn: the connection
 * @pkt: the packet, parsed
 * @reply: it comes from the real server
 *
 * Advances the state, sets its timeout, moves the connection between active
 * and inactive.  Takes a lock only when the state changes.
 * Context: RCU, BH off.
 */
void l4lb_state_packet(struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		       bool reply)
{
	u8 state = READ_ONCE(conn->state);
	unsigned int timeout;

	if (reply && l4lb_conn_test(conn, L4LB_CONN_NO_OUTPUT))
		clear_bit(L4LB_CONN_NO_OUTPUT, &conn->flags);
	if (state < L4LB_TCP_MAX) {
		if (tcp_after(state, conn_side(conn, reply), pkt->tcp) != state)
			tcp_change(conn, pkt->tcp, reply);
	} else if (reply) {
		assure(conn);
	}

	timeout = state_timeout(conn->ln, READ_ONCE(conn->state));
	if (READ_ONCE(conn->timeout) != timeout) {
		WRITE_ONCE(conn->timeout, timeout);
		WRITE_ONCE(conn->last, jiffies);
	} else {
		l4lb_conn_touch(conn);
	}
}

const char *l4lb_state_name(const struct l4lb_conn *conn)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return l4lb_conn_test(conn, L4LB_CONN_ASSURED) ? "ASSURED" :
								 "NONE";
	return states[READ_ONCE(conn->state)].name;
}

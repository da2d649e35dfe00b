// SPDX-License-Identifier: GPL-2.0
/*
 * Connection states.
 *
 * The director is not an end point: it follows TCP by the packets it sees, with
 * direct routing and tunnels the client's only.  So there are three tables: for
 * the client's packets (in), for the real server's (out), and for the client's
 * when replies take another way (in only).
 *
 * A row is an event, the first of RST, SYN, FIN, ACK that is set; a column is
 * the state before it.  A segment with none of these flags leads to CLOSE.
 * SCTP is followed in the same way, by its chunks.
 */
#include "conn/state.h"
#include "conn/copy.h"
#include "conn/defence.h"
#include "conn/table.h"
#include "conn/timeout.h"

static_assert((int)L4LB_UDP == 11 && (int)L4LB_SCTP_NONE == 12 &&
	      (int)L4LB_STATE_MAX == 26);

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

/* The usual tables. */
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

/* With secure_tcp active a client's ACK alone does not establish a connection:
 * if replies can be seen, the real server must have answered.
 */
static const u8 tcp_next_secure[SIDE_MAX][ON_MAX][L4LB_TCP_MAX] = {
	[SIDE_IN] = {
		/*            NO    ES    SS    SR    FW    TW    CL    CW    LA    LI    SA */
		[ON_SYN] = { T_SR, T_ES, T_ES, T_SR, T_SR, T_SR, T_SR, T_SR, T_SR, T_SR, T_SA },
		[ON_FIN] = { T_CL, T_CW, T_SS, T_TW, T_TW, T_TW, T_CL, T_CW, T_LA, T_LI, T_SA },
		[ON_ACK] = { T_ES, T_ES, T_SS, T_SR, T_FW, T_TW, T_CL, T_CW, T_CL, T_LI, T_SA },
		[ON_RST] = { T_CL, T_CL, T_CL, T_SR, T_CL, T_CL, T_CL, T_CL, T_LA, T_LI, T_CL },
	},
	[SIDE_OUT] = {
		/*            NO    ES    SS    SR    FW    TW    CL    CW    LA    LI    SA */
		[ON_SYN] = { T_SS, T_ES, T_SS, T_SA, T_SS, T_SS, T_SS, T_SS, T_SS, T_LI, T_SA },
		[ON_FIN] = { T_TW, T_FW, T_SS, T_TW, T_FW, T_TW, T_CL, T_TW, T_LA, T_LI, T_TW },
		[ON_ACK] = { T_ES, T_ES, T_SS, T_ES, T_FW, T_TW, T_CL, T_CW, T_LA, T_ES, T_ES },
		[ON_RST] = { T_CL, T_CL, T_SS, T_CL, T_CL, T_TW, T_CL, T_CL, T_CL, T_CL, T_CL },
	},
	[SIDE_IN_ONLY] = {
		/*            NO    ES    SS    SR    FW    TW    CL    CW    LA    LI    SA */
		[ON_SYN] = { T_SA, T_ES, T_ES, T_SR, T_SA, T_SA, T_SA, T_SA, T_SA, T_SA, T_SA },
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

/* Events of SCTP, by chunk, see l4lb_parse_chunk(); other chunks are data. */
enum chunk_event {
	ON_DATA, ON_INIT, ON_INIT_ACK, ON_COOKIE, ON_COOKIE_ACK, ON_SHUTDOWN,
	ON_SHUT_ACK, ON_SHUT_DONE, ON_ERROR, ON_ABORT, ON_CHUNK_MAX
};

#define S_NO L4LB_SCTP_NONE
#define S_I1 L4LB_SCTP_INIT1
#define S_IN L4LB_SCTP_INIT
#define S_CS L4LB_SCTP_COOKIE_SENT
#define S_CR L4LB_SCTP_COOKIE_REPLIED
#define S_CW L4LB_SCTP_COOKIE_WAIT
#define S_CO L4LB_SCTP_COOKIE
#define S_CE L4LB_SCTP_COOKIE_ECHOED
#define S_ES L4LB_SCTP_ESTABLISHED
#define S_SS L4LB_SCTP_SHUTDOWN_SENT
#define S_SR L4LB_SCTP_SHUTDOWN_RECEIVED
#define S_SA L4LB_SCTP_SHUTDOWN_ACK_SENT
#define S_RJ L4LB_SCTP_REJECTED
#define S_CL L4LB_SCTP_CLOSED

/* States not named here do not change: 0 is not a state of SCTP. */
static const u8 sctp_next[SIDE_MAX][ON_CHUNK_MAX][L4LB_STATE_MAX] = {
	[SIDE_IN] = {
		[ON_DATA]	= { [S_NO] = S_ES },
		[ON_INIT]	= { [S_NO] = S_I1, [S_I1] = S_IN, [S_RJ ... S_CL] = S_IN },
		[ON_INIT_ACK]	= { [S_NO ... S_IN] = S_CW, [S_CW] = S_CO },
		[ON_COOKIE]	= { [S_NO] = S_CR, [S_I1] = S_IN, [S_CS] = S_CR },
		[ON_COOKIE_ACK]	= { [S_NO] = S_ES, [S_CE] = S_ES },
		[ON_SHUTDOWN]	= { [S_NO] = S_SR, [S_ES] = S_SR },
		[ON_SHUT_ACK]	= { [S_NO] = S_CL, [S_I1] = S_IN, [S_SS] = S_CL, [S_SA] = S_CL },
		[ON_SHUT_DONE]	= { [S_NO ... S_IN] = S_CL, [S_SA] = S_CL },
		[ON_ERROR]	= { [S_NO] = S_CL, [S_CE] = S_CL },
		[ON_ABORT]	= { [S_NO ... S_CR] = S_CL, [S_CW] = S_RJ, [S_CO ... S_RJ] = S_CL },
	},
	[SIDE_OUT] = {
		[ON_DATA]	= { [S_NO] = S_ES },
		[ON_INIT]	= { [S_NO ... S_CR] = S_CW, [S_CO ... S_CE] = S_CW,
				    [S_SS ... S_CL] = S_CW },
		[ON_INIT_ACK]	= { [S_NO ... S_IN] = S_CS },
		[ON_COOKIE]	= { [S_NO ... S_CO] = S_CE },
		[ON_COOKIE_ACK]	= { [S_NO ... S_CE] = S_ES },
		[ON_SHUTDOWN]	= { [S_NO ... S_ES] = S_SS },
		[ON_SHUT_ACK]	= { [S_NO ... S_CR] = S_SA, [S_SS ... S_SR] = S_SA },
		[ON_SHUT_DONE]	= { [S_NO] = S_CL },
		[ON_ERROR]	= { [S_NO ... S_CR] = S_CL },
		[ON_ABORT]	= { [S_NO] = S_CL, [S_I1] = S_RJ, [S_IN ... S_RJ] = S_CL },
	},
	[SIDE_IN_ONLY] = {
		[ON_DATA]	= { [S_NO] = S_ES, [S_CW] = S_ES },
		[ON_INIT]	= { [S_NO] = S_I1, [S_I1] = S_IN, [S_CS ... S_CW] = S_IN,
				    [S_RJ ... S_CL] = S_IN },
		[ON_INIT_ACK]	= { [S_NO ... S_CW] = S_CE },
		[ON_COOKIE]	= { [S_NO ... S_CW] = S_ES },
		[ON_COOKIE_ACK]	= { [S_NO] = S_ES, [S_CS ... S_CR] = S_ES, [S_CO ... S_CE] = S_ES },
		[ON_SHUTDOWN]	= { [S_NO] = S_SR, [S_ES] = S_SR },
		[ON_SHUT_ACK]	= { [S_NO] = S_CL, [S_I1] = S_IN, [S_ES ... S_SS] = S_CL,
				    [S_SA] = S_CL },
		[ON_SHUT_DONE]	= { [S_NO ... S_CR] = S_CL, [S_SR ... S_SA] = S_CL },
		[ON_ERROR]	= { [S_NO] = S_CL },
		[ON_ABORT]	= { [S_NO ... S_CR] = S_CL, [S_CW] = S_RJ, [S_CO ... S_RJ] = S_CL },
	},
};

#undef S_NO
#undef S_I1
#undef S_IN
#undef S_CS
#undef S_CR
#undef S_CW
#undef S_CO
#undef S_CE
#undef S_ES
#undef S_SS
#undef S_SR
#undef S_SA
#undef S_RJ
#undef S_CL

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
	[L4LB_SCTP_NONE]		= { "NONE", 2, false },
	[L4LB_SCTP_INIT1]		= { "INIT1", 4, false },
	[L4LB_SCTP_INIT]		= { "INIT", 61, false },
	[L4LB_SCTP_COOKIE_SENT]		= { "C-SENT", 61, false },
	[L4LB_SCTP_COOKIE_REPLIED]	= { "C-REPLIED", 61, false },
	[L4LB_SCTP_COOKIE_WAIT]		= { "C-WAIT", 61, false },
	[L4LB_SCTP_COOKIE]		= { "COOKIE", 61, false },
	[L4LB_SCTP_COOKIE_ECHOED]	= { "C-ECHOED", 61, false },
	[L4LB_SCTP_ESTABLISHED]		= { "ESTABLISHED", 900, true },
	[L4LB_SCTP_SHUTDOWN_SENT]	= { "S-SENT", 61, false },
	[L4LB_SCTP_SHUTDOWN_RECEIVED]	= { "S-RECEIVED", 61, false },
	[L4LB_SCTP_SHUTDOWN_ACK_SENT]	= { "S-ACK-SENT", 61, false },
	[L4LB_SCTP_REJECTED]		= { "REJECTED", 4, false },
	[L4LB_SCTP_CLOSED]		= { "CLOSED", 61, false },
};

void l4lb_timeouts_init(struct l4lb_timeouts *timeouts)
{
	timeouts->tcp = 15 * 60 * HZ;
	timeouts->tcp_fin = 2 * 60 * HZ;
	timeouts->udp = 5 * 60 * HZ;
}

/* The service's own timeout for a state, in seconds; 0: it has none. */
static unsigned int service_timeout(const struct l4lb_conn *conn, u8 state)
{
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	if (!svc)
		return 0;
	switch (state) {
	case L4LB_TCP_ESTABLISHED:
		return READ_ONCE(svc->policy.tcp);
	case L4LB_TCP_FIN_WAIT:
		return READ_ONCE(svc->policy.tcp_fin);
	case L4LB_SCTP_ESTABLISHED:
		return READ_ONCE(svc->policy.sctp);
	default:
		return 0;
	}
}

static __always_inline unsigned int
state_timeout(const struct l4lb_conn *conn, u8 state)
{
	const struct l4lb_net *ln = l4lb_conn_net(conn);
	unsigned int seconds;

	if (state == L4LB_UDP)
		return l4lb_state_udp_timeout(conn->server);
	seconds = service_timeout(conn, state);
	if (seconds)
		return seconds * HZ;
	switch (state) {
	case L4LB_TCP_ESTABLISHED:
		return READ_ONCE(ln->timeouts.tcp);
	case L4LB_TCP_FIN_WAIT:
		return READ_ONCE(ln->timeouts.tcp_fin);
	default:
		return states[state].timeout * HZ;
	}
}

static __always_inline u32 present_timeout(const struct l4lb_conn *conn)
{
	return min(state_timeout(conn, READ_ONCE(conn->state)),
		   L4LB_CONN_TIMEOUT_MAX);
}

u32 l4lb_state_timeout(const struct l4lb_conn *conn)
{
	return present_timeout(conn);
}

static u8 tcp_after(u8 state, enum side side, u8 flags, bool secure)
{
	const u8 (*next)[ON_MAX][L4LB_TCP_MAX] = secure ? tcp_next_secure :
							  tcp_next;
	enum event ev = flags & L4LB_TCP_FLAG_RST ? ON_RST :
			flags & L4LB_TCP_FLAG_SYN ? ON_SYN :
			flags & L4LB_TCP_FLAG_FIN ? ON_FIN :
			flags & L4LB_TCP_FLAG_ACK ? ON_ACK : ON_NONE;

	return ev == ON_NONE ? L4LB_TCP_CLOSE : next[side][ev][state];
}

static enum chunk_event chunk_event(u8 chunk)
{
	switch (chunk) {
	case SCTP_CID_INIT:
		return ON_INIT;
	case SCTP_CID_INIT_ACK:
		return ON_INIT_ACK;
	case SCTP_CID_ABORT:
		return ON_ABORT;
	case SCTP_CID_SHUTDOWN:
		return ON_SHUTDOWN;
	case SCTP_CID_SHUTDOWN_ACK:
		return ON_SHUT_ACK;
	case SCTP_CID_ERROR:
		return ON_ERROR;
	case SCTP_CID_COOKIE_ECHO:
		return ON_COOKIE;
	case SCTP_CID_COOKIE_ACK:
		return ON_COOKIE_ACK;
	case SCTP_CID_SHUTDOWN_COMPLETE:
		return ON_SHUT_DONE;
	default:
		return ON_DATA;
	}
}

static enum side conn_side(const struct l4lb_conn *conn, bool reply)
{
	if (reply)
		return SIDE_OUT;
	return l4lb_conn_test(conn, L4LB_CONN_NO_OUTPUT) ? SIDE_IN_ONLY :
							   SIDE_IN;
}

static u8 state_after(const struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		      bool reply)
{
	enum side side = conn_side(conn, reply);
	u8 state = READ_ONCE(conn->state);

	if (state < L4LB_TCP_MAX)
		return tcp_after(state, side, pkt->tcp,
				 l4lb_defence_works(&l4lb_conn_net(conn)->sysctl.secure_tcp));
	if (state < L4LB_SCTP_FIRST)
		return state;
	return sctp_next[side][chunk_event(pkt->chunk)][state] ?: state;
}

/* FIN_WAIT is the last state that is seen if replies are not. */
static bool is_over(const struct l4lb_conn *conn, u8 state)
{
	switch (state) {
	case L4LB_TCP_TIME_WAIT:
	case L4LB_TCP_CLOSE:
	case L4LB_SCTP_REJECTED:
	case L4LB_SCTP_CLOSED:
		return true;
	case L4LB_TCP_FIN_WAIT:
		return l4lb_conn_test(conn, L4LB_CONN_NO_OUTPUT);
	default:
		return false;
	}
}

static bool is_established(u8 state)
{
	return state == L4LB_TCP_ESTABLISHED || state == L4LB_SCTP_ESTABLISHED;
}

/* The template is told only once that @conn was established or answered. */
static bool must_assure(const struct l4lb_conn *conn)
{
	return l4lb_conn_test(conn, L4LB_CONN_CONTROLLED) &&
	       !l4lb_conn_test(conn, L4LB_CONN_ASSURED);
}

/* l4lb_conn_lock() held, @conn is not dead. */
static void assure(struct l4lb_conn *conn)
{
	lockdep_assert_held(l4lb_conn_lock(conn));
	if (!must_assure(conn))
		return;
	l4lb_conn_set(conn, L4LB_CONN_ASSURED);
	if (static_branch_unlikely(&l4lb_conn_watched) &&
	    !l4lb_conn_test(conn->control, L4LB_CONN_ASSURED))
		l4lb_conn_set(conn->control, L4LB_CONN_DIRTY);
	l4lb_conn_set(conn->control, L4LB_CONN_ASSURED);
}

static void assure_unlocked(struct l4lb_conn *conn)
{
	spin_lock_bh(l4lb_conn_lock(conn));
	if (!l4lb_conn_test(conn, L4LB_CONN_DEAD))
		assure(conn);
	spin_unlock_bh(l4lb_conn_lock(conn));
}

/* A forged source address gets a repeated SYN and ACK, a bare ACK, or a reset,
 * too: those prove nothing.  But a server answers an ACK that it does not
 * expect with a reset, after which the state is not one of these.
 */
static bool is_answer(const struct l4lb_conn *conn, const struct l4lb_pkt *pkt)
{
	switch (READ_ONCE(conn->state)) {
	case L4LB_UDP:
	case L4LB_SCTP_ESTABLISHED:
		return true;
	case L4LB_TCP_ESTABLISHED:
	case L4LB_TCP_FIN_WAIT:
	case L4LB_TCP_CLOSE_WAIT:
	case L4LB_TCP_LAST_ACK:
		return l4lb_conn_test(conn, L4LB_CONN_ACKED) &&
		       !(pkt->tcp & (L4LB_TCP_FLAG_SYN | L4LB_TCP_FLAG_RST));
	default:
		return false;
	}
}

static bool is_ack(const struct l4lb_conn *conn, const struct l4lb_pkt *pkt)
{
	return conn->proto == IPPROTO_TCP && pkt->tcp & L4LB_TCP_FLAG_ACK &&
	       !(pkt->tcp & (L4LB_TCP_FLAG_SYN | L4LB_TCP_FLAG_RST));
}

/* Notes what shows that the client is there. */
static void note_proof(struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		       bool reply)
{
	int bit = reply ? L4LB_CONN_ANSWERED : L4LB_CONN_ACKED;

	if (!l4lb_conn_test(conn, bit) &&
	    (reply ? is_answer(conn, pkt) : is_ack(conn, pkt)))
		l4lb_conn_set(conn, bit);
}

/* The template is told only once that @conn may not be evicted. */
static bool must_trust(const struct l4lb_conn *conn)
{
	return l4lb_conn_test(conn, L4LB_CONN_CONTROLLED) &&
	       !l4lb_conn_test(conn, L4LB_CONN_TRUSTED);
}

static void trust(struct l4lb_conn *conn)
{
	spin_lock_bh(l4lb_conn_lock(conn));
	if (!l4lb_conn_test(conn, L4LB_CONN_DEAD) && must_trust(conn)) {
		l4lb_conn_set(conn, L4LB_CONN_TRUSTED);
		l4lb_conn_set(conn->control, L4LB_CONN_TRUSTED);
	}
	spin_unlock_bh(l4lb_conn_lock(conn));
}

/* l4lb_conn_lock() held, @conn is not dead. */
static __always_inline void set_state(struct l4lb_conn *conn, u8 state,
				      bool active)
{
	WRITE_ONCE(conn->state, state);
	l4lb_conn_set_active(conn, active);
	l4lb_conn_set_holds(conn, !is_over(conn, state));
	if (is_established(state)) {
		assure(conn);
		l4lb_conn_not_half_open(conn, rcu_dereference(l4lb_conn_net(conn)->conns));
	}
}

/* The next state is computed again under the lock: meanwhile another CPU may
 * have seen a packet of the other direction.
 */
static void state_change(struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
			 bool reply)
{
	u8 next;

	spin_lock(l4lb_conn_lock(conn));
	if (!l4lb_conn_test(conn, L4LB_CONN_DEAD)) {
		next = state_after(conn, pkt, reply);
		set_state(conn, next, states[next].active);
		/* A server ends only what its client has accepted; see lazy.c. */
		if (reply && next == L4LB_TCP_TIME_WAIT)
			l4lb_conn_not_half_open(conn, rcu_dereference(l4lb_conn_net(conn)->conns));
		if (static_branch_unlikely(&l4lb_conn_watched))
			l4lb_watch_changed(conn);
	}
	spin_unlock(l4lb_conn_lock(conn));
}

/* The state is neither established nor over, and no other director is told of it:
 * nothing but what is set here changes with it.
 */
void l4lb_state_begin(struct l4lb_conn *conn, const struct l4lb_pkt *pkt)
{
	u8 state = state_after(conn, pkt, false);

	conn->state = state;
	if (states[state].active)
		atomic_set(&conn->flags, atomic_read(&conn->flags) &
					 ~BIT(L4LB_CONN_INACTIVE));
	conn->timeout = present_timeout(conn);
}

/**
 * l4lb_state_packet() - update a connection after one of its packets
 * @conn: the connection
 * @pkt: the packet, parsed
 * @reply: the packet comes from the real server
 *
 * Advances the state, sets its timeout, moves the connection between active
 * and inactive.  Takes a lock only when the state changes.
 * Context: RCU, BH off.
 */
void l4lb_state_packet(struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
		       bool reply)
{
	u32 timeout;

	if (reply && l4lb_conn_test(conn, L4LB_CONN_NO_OUTPUT))
		l4lb_conn_clear(conn, L4LB_CONN_NO_OUTPUT);
	note_proof(conn, pkt, reply);
	if (state_after(conn, pkt, reply) != READ_ONCE(conn->state))
		state_change(conn, pkt, reply);
	else if (reply && conn->proto == IPPROTO_UDP && must_assure(conn))
		assure_unlocked(conn);
	if (must_trust(conn) && l4lb_defence_victim(conn) == L4LB_VICTIM_NEVER)
		trust(conn);

	timeout = present_timeout(conn);
	if (READ_ONCE(conn->timeout) != timeout) {
		WRITE_ONCE(conn->timeout, timeout);
		WRITE_ONCE(conn->last, (u32)jiffies);
	} else {
		l4lb_conn_touch(conn);
	}
}

/**
 * l4lb_state_follow() - what another director says of a connection
 * @conn: the connection, not a template
 * @state: enum l4lb_state, of its protocol
 * @active: the real server counts it as active
 * @timeout: jiffies; 0: the state's own here
 * @idle: jiffies of it that are over; less than @timeout, or 0
 *
 * Context: RCU, BH off.
 */
void l4lb_state_follow(struct l4lb_conn *conn, u8 state, bool active,
		       u32 timeout, u32 idle)
{
	timeout = min(timeout ?: state_timeout(conn, state),
		      L4LB_CONN_TIMEOUT_MAX);
	spin_lock_bh(l4lb_conn_lock(conn));
	if (!l4lb_conn_test(conn, L4LB_CONN_DEAD)) {
		set_state(conn, state, active);
		l4lb_conn_renew(conn, timeout, idle);
	}
	spin_unlock_bh(l4lb_conn_lock(conn));
}

const char *l4lb_state_name(const struct l4lb_conn *conn)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return l4lb_conn_test(conn, L4LB_CONN_ASSURED) ? "ASSURED" :
								 "NONE";
	return states[READ_ONCE(conn->state)].name;
}

bool l4lb_state_known(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(states); i++)
		if (!strcmp(name, states[i].name))
			return true;
	return !strcmp(name, "ASSURED");
}

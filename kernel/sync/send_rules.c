// SPDX-License-Identifier: GPL-2.0
/*
 * When a connection is announced.
 *
 *	by packets	the sync_threshold-th packet of its client; with a
 *			sync_period of up to 8, each of that period, too, up to
 *			the eighth packet
 *	by its state	each change to a state in which an end has closed it
 *	by the sweep	it is established, and nobody was told; packets were seen
 *			since it was last announced, and that is a while ago; or
 *			an announcement has failed
 *
 * A connection has four bits for the time of its last announcement, in units of
 * 15 seconds.  They would come round after 14 units, so the sweep marks those
 * that are old.
 */
#include "sync/send_rules.h"

#include "conn/copy.h"
#include "conn/count.h"
#include "conn/state.h"
#include "service/service.h"

#define UNIT		(15 * HZ)
#define REFRESH		(60 * HZ)	/* unless sync_refresh_period says so */
#define CHANGE_SEEN	(60 * HZ)	/* by the sweep, at all connections */
#define SWEEP_EVERY	(5 * HZ / 4)	/* between the sweep's visits, or more */

enum {
	TOLD_NEVER	= 0,
	TOLD_UNITS	= 14,	/* 1 to 14: when */
	TOLD_LONG_AGO	= L4LB_CONN_TOLD_MASK,
	AGE_OLD		= 11,	/* units; the rest is for a slow sweep */
	/* Jiffies: a connection of less needs every chance to be renewed. */
	TIMEOUT_SHORT	= 20 * HZ,
};

static_assert((int)TOLD_UNITS < (int)TOLD_LONG_AGO);

const u8 l4lb_send_phases[L4LB_STATE_MAX] = {
	[L4LB_TCP_NONE]			= L4LB_SEND_NEW,
	[L4LB_TCP_ESTABLISHED]		= L4LB_SEND_OPEN,
	[L4LB_TCP_SYN_SENT]		= L4LB_SEND_NEW,
	[L4LB_TCP_SYN_RECV]		= L4LB_SEND_NEW,
	[L4LB_TCP_FIN_WAIT]		= L4LB_SEND_CLOSING,
	[L4LB_TCP_TIME_WAIT]		= L4LB_SEND_OVER,
	[L4LB_TCP_CLOSE]		= L4LB_SEND_OVER,
	[L4LB_TCP_CLOSE_WAIT]		= L4LB_SEND_CLOSING,
	[L4LB_TCP_SYNACK]		= L4LB_SEND_NEW,
	[L4LB_UDP]			= L4LB_SEND_OPEN,
	[L4LB_SCTP_NONE ... L4LB_SCTP_COOKIE_ECHOED] = L4LB_SEND_NEW,
	[L4LB_SCTP_ESTABLISHED]		= L4LB_SEND_OPEN,
	[L4LB_SCTP_SHUTDOWN_SENT]	= L4LB_SEND_CLOSING,
	[L4LB_SCTP_SHUTDOWN_RECEIVED]	= L4LB_SEND_CLOSING,
	[L4LB_SCTP_SHUTDOWN_ACK_SENT]	= L4LB_SEND_CLOSING,
	[L4LB_SCTP_CLOSED]		= L4LB_SEND_OVER,
};

/* Would a new connection of its client go to another real server?  Those of persistent
 * services go where their template says.  What was told once stays told: the next
 * change may make it an exception again.
 */
static bool is_exception(const struct l4lb_conn *conn, struct l4lb_service *svc)
{
	const struct l4lb_flow flow = {
		.af	= conn->af,
		.proto	= conn->proto,
		.saddr	= l4lb_conn_client(conn),
		.daddr	= l4lb_conn_vip(conn),
		.sport	= conn->cport,
		.dport	= conn->vport,
	};

	return l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ||
	       l4lb_conn_test(conn, L4LB_CONN_CONTROLLED) ||
	       l4lb_conn_told(conn) != TOLD_NEVER ||
	       l4lb_service_maps(svc, &flow) != conn->server;
}

static bool is_wanted(const struct l4lb_conn *conn, struct l4lb_service *svc)
{
	u32 which = READ_ONCE(svc->policy.sync);

	if (likely(which == L4LB_SERVICE_SYNC_ALL))
		return true;
	switch (which) {
	case L4LB_SERVICE_SYNC_TEMPLATES:
		return l4lb_conn_test(conn, L4LB_CONN_TEMPLATE);
	case L4LB_SERVICE_SYNC_EXCEPTIONS:
		return is_exception(conn, svc);
	default:
		return false;
	}
}

/* Records have one family for client and real server, and other directors cannot
 * tell a removed server, a placeholder, or a bypass.  Nor have they the local end of
 * full NAT.
 */
bool l4lb_send_tellable(const struct l4lb_conn *conn)
{
	return !l4lb_conn_test(conn, L4LB_CONN_ONE_PACKET) &&
	       conn->method != L4LB_FULL_NAT &&
	       rcu_access_pointer(conn->server->svc) &&
	       conn->server->sched.af == conn->af;
}

static inline bool is_possible(const struct l4lb_conn *conn)
{
	struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	if (l4lb_conn_test(conn, L4LB_CONN_CONTROLLED) &&
	    READ_ONCE(l4lb_conn_net(conn)->sysctl.sync_persist_mode))
		return false;
	return svc && l4lb_send_tellable(conn) && is_wanted(conn, svc);
}

bool l4lb_send_possible(const struct l4lb_conn *conn)
{
	return is_possible(conn);
}

/* A copy belongs to the director that has announced it. */
bool l4lb_send_allowed(const struct l4lb_conn *conn)
{
	return is_possible(conn) && !l4lb_conn_is_copy(conn);
}

/* ---- by packets ---- */

/* With settings that announce a connection more than once by its packets. */
bool l4lb_send_counts_again(const struct l4lb_conn *conn)
{
	const struct l4lb_sysctl *sysctl = &l4lb_conn_net(conn)->sysctl;
	unsigned int n = l4lb_conn_packets(conn);
	unsigned int threshold = l4lb_send_threshold(sysctl);
	unsigned int period = READ_ONCE(sysctl->sync_threshold[1]);

	/* The sweep does the rest of the refreshing. */
	if (READ_ONCE(sysctl->sync_refresh_period) &&
	    (!period || l4lb_conn_told(conn)))
		return l4lb_conn_told(conn) == TOLD_NEVER;
	if (period && period <= L4LB_SEND_COUNT_MAX)
		return n <= L4LB_SEND_COUNT_MAX && n % period == threshold % period;
	return n == threshold;
}

/* ---- by the sweep ---- */

static unsigned int unit_now(void)
{
	return jiffies / UNIT % TOLD_UNITS + 1;
}

void l4lb_send_note(struct l4lb_conn *conn)
{
	l4lb_conn_set_told(conn, unit_now());
}

/* Units since then; the true age is up to one more, or one less. */
static unsigned int units_since(unsigned int told)
{
	return (unit_now() + TOLD_UNITS - told) % TOLD_UNITS;
}

/* Was it used in the last @span jiffies?  A template is, while it is held. */
static bool used_in(const struct l4lb_conn *conn, u32 span)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) &&
	    atomic_read(&conn->n_holders))
		return true;
	return l4lb_conn_idle(conn) < (s32)span;
}

/* Was it used in the last @units, or in the present one? */
static bool used(const struct l4lb_conn *conn, unsigned int units)
{
	return used_in(conn, units * UNIT + (u32)(jiffies % UNIT));
}

/* Units after which it is announced again: the true age is then at least a
 * quarter of its timeout, or the refresh period.
 */
static unsigned int units_between(const struct l4lb_conn *conn)
{
	const struct l4lb_net *ln = l4lb_conn_net(conn);
	u32 refresh = READ_ONCE(ln->sysctl.sync_refresh_period) ?: REFRESH;
	u32 time = min(READ_ONCE(conn->timeout) / 4, refresh);

	if (time < UNIT)
		return 1;
	return min_t(u32, DIV_ROUND_UP(time, UNIT) + 1, AGE_OLD);
}

/* Other directors would soon give it up, though it is in use. */
static bool is_late(struct l4lb_conn *conn, unsigned int told)
{
	unsigned int age;

	if (told == TOLD_LONG_AGO)
		return used(conn, AGE_OLD - 2);
	age = units_since(told);
	if (used(conn, age))
		return age >= units_between(conn);
	if (age >= AGE_OLD)
		l4lb_conn_set_told(conn, TOLD_LONG_AGO);
	return false;
}

/* Less than a unit is no time to wait. */
static bool is_short(const struct l4lb_conn *conn)
{
	return READ_ONCE(conn->timeout) < TIMEOUT_SHORT &&
	       used_in(conn, SWEEP_EVERY) &&
	       l4lb_send_phase(conn) == L4LB_SEND_OPEN;
}

/* A datagram or two may have a forged source: they are not worth a record. */
static bool is_first_due(const struct l4lb_conn *conn)
{
	const struct l4lb_sysctl *sysctl = &l4lb_conn_net(conn)->sysctl;

	return conn->proto != IPPROTO_UDP ||
	       l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ||
	       l4lb_conn_packets(conn) >= l4lb_send_threshold(sysctl);
}

/* An announcement could not be written. */
static bool has_failed(const struct l4lb_conn *conn)
{
	return atomic_read(&conn->flags) &
	       (BIT(L4LB_CONN_DIRTY) | BIT(L4LB_CONN_DUE));
}

/* Need not be looked at for exceptions again: to choose costs more than a visit of
 * the sweep.
 */
static bool is_settled(const struct l4lb_conn *conn)
{
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	if (!svc || READ_ONCE(svc->policy.sync) != L4LB_SERVICE_SYNC_EXCEPTIONS ||
	    l4lb_conn_told(conn) != TOLD_NEVER ||
	    time_before(jiffies, READ_ONCE(svc->changed) + CHANGE_SEEN) ||
	    has_failed(conn))
		return false;
	return l4lb_conn_packets(conn) >= l4lb_send_threshold(&svc->ln->sysctl) ||
	       !used_in(conn, 4 * SWEEP_EVERY);
}

bool l4lb_send_owed(struct l4lb_conn *conn)
{
	unsigned int told = l4lb_conn_told(conn);
	enum l4lb_send_phase phase = l4lb_send_phase(conn);
	bool late;

	/* Of the last announcement only counts that there was one. */
	if (phase == L4LB_SEND_OVER)
		return told != TOLD_NEVER && has_failed(conn) &&
		       l4lb_send_allowed(conn);
	late = told != TOLD_NEVER && is_late(conn, told);
	if (phase == L4LB_SEND_SILENT || phase == L4LB_SEND_NEW ||
	    is_settled(conn) || !l4lb_send_allowed(conn))
		return false;
	if (told == TOLD_NEVER)
		return is_first_due(conn);
	return late || is_short(conn) || has_failed(conn);
}

bool l4lb_send_shared(const struct l4lb_conn *conn)
{
	return l4lb_send_phase(conn) == L4LB_SEND_OPEN &&
	       (l4lb_conn_told(conn) != TOLD_NEVER ||
		l4lb_conn_test(conn, L4LB_CONN_SYNCED));
}

/* Also of a real server that was removed. */
bool l4lb_send_known(const struct l4lb_conn *conn)
{
	enum l4lb_send_phase phase = l4lb_send_phase(conn);

	return (phase == L4LB_SEND_OPEN || phase == L4LB_SEND_CLOSING) &&
	       l4lb_conn_told(conn) != TOLD_NEVER && !l4lb_conn_is_copy(conn) &&
	       conn->server->sched.af == conn->af;
}

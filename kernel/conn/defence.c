// SPDX-License-Identifier: GPL-2.0
/*
 * Defence against floods of new flows, which use up memory.
 *
 *	drop_packet	one of every so many new flows is dropped, before the
 *			scheduler is asked
 *	drop_entry	half-open and hardly used connections are dropped
 *	secure_tcp	a connection counts as established later (state.c)
 *
 * Each is off, on, or automatic: on while free memory is below amemthresh
 * pages.  Memory is checked once a second, and only while one of the three
 * is automatic and there is a service to defend.
 *
 * The sweep does the work of drop_entry: each second it drops what may go from
 * 1/32 of the table, as ip_vs does, see sweep.c.
 */
#include "conn/defence.h"

#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/swap.h>

#include "conn/copy.h"
#include "conn/count.h"
#include "conn/state.h"
#include "conn/table.h"

#define LOOK_INTERVAL	HZ
#define HALF_OPEN_SPARED (1 * HZ)	/* a handshake may be under way */
#define IDLE_SPARED	(60 * HZ)

/* ---- memory ---- */

/* Sets @mode if it is automatic. */
static void set_mode(int *mode, bool low)
{
	if (low)
		cmpxchg(mode, L4LB_DEFENCE_READY, L4LB_DEFENCE_LOW);
	else
		cmpxchg(mode, L4LB_DEFENCE_LOW, L4LB_DEFENCE_READY);
}

static void look_at_memory(struct l4lb_net *ln)
{
	long wanted = max(READ_ONCE(ln->sysctl.amemthresh), 0);
	struct sysinfo info;
	long missing;

	si_meminfo(&info);
	missing = wanted - (long)(info.freeram + info.bufferram);
	if (missing > 0)
		WRITE_ONCE(ln->defence.rate, wanted / missing);
	set_mode(&ln->sysctl.drop_entry, missing > 0);
	set_mode(&ln->sysctl.drop_packet, missing > 0);
	set_mode(&ln->sysctl.secure_tcp, missing > 0);
}

static bool mode_is_automatic(const int *mode)
{
	int now = READ_ONCE(*mode);

	return now == L4LB_DEFENCE_READY || now == L4LB_DEFENCE_LOW;
}

static bool any_is_automatic(const struct l4lb_net *ln)
{
	return mode_is_automatic(&ln->sysctl.drop_entry) ||
	       mode_is_automatic(&ln->sysctl.drop_packet) ||
	       mode_is_automatic(&ln->sysctl.secure_tcp);
}

/* Stops by itself; a new service or mode starts it again. */
static void look_work(struct work_struct *work)
{
	struct l4lb_net *ln = container_of(to_delayed_work(work),
					   struct l4lb_net, defence.work);

	if (!any_is_automatic(ln))
		return;
	look_at_memory(ln);
	if (READ_ONCE(ln->n_services[0]) || READ_ONCE(ln->n_services[1]))
		l4lb_defence_kick(ln);
}

void l4lb_defence_kick(struct l4lb_net *ln)
{
	if (any_is_automatic(ln))
		queue_delayed_work(system_power_efficient_wq,
				   &ln->defence.work, LOOK_INTERVAL);
}

void l4lb_defence_changed(struct l4lb_net *ln)
{
	look_at_memory(ln);
	l4lb_defence_kick(ln);
}

void l4lb_defence_init(struct l4lb_net *ln)
{
	INIT_DELAYED_WORK(&ln->defence.work, look_work);
}

/* Call it when no sysctl and no service is left to start the work again. */
void l4lb_defence_exit(struct l4lb_net *ln)
{
	cancel_delayed_work_sync(&ln->defence.work);
}

/* ---- packets ---- */

bool l4lb_defence_drops_packet(struct l4lb_net *ln)
{
	int mode = READ_ONCE(ln->sysctl.drop_packet);
	int rate;

	if (likely(mode < L4LB_DEFENCE_LOW))
		return false;
	rate = mode == L4LB_DEFENCE_ALWAYS ?
	       READ_ONCE(ln->sysctl.am_droprate) : READ_ONCE(ln->defence.rate);
	/* A negative number drops all, 0 nothing, as in ip_vs. */
	if (!rate)
		return false;
	if (rate <= 1)
		return true;
	return !((u32)atomic_fetch_inc(&ln->defence.attempts) % rate);
}

/* ---- connections ---- */

static bool idle_longer(const struct l4lb_conn *conn, s32 spared)
{
	return l4lb_conn_idle(conn) > spared;
}

/* Idle, with few packets from the client: the fewer, the likelier.  A copy has
 * none.
 */
static bool hardly_used(const struct l4lb_conn *conn)
{
	unsigned int packets = max(l4lb_conn_packets(conn), 1U);

	return idle_longer(conn, IDLE_SPARED) &&
	       packets < L4LB_CONN_PACKETS_MANY && !(get_random_u32() % packets);
}

bool l4lb_defence_drops_entry(const struct l4lb_conn *conn)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return !l4lb_conn_test(conn, L4LB_CONN_ASSURED) &&
		       !atomic_read(&conn->n_holders);
	switch (READ_ONCE(conn->state)) {
	case L4LB_TCP_SYN_RECV:
	case L4LB_TCP_SYNACK:
	case L4LB_SCTP_INIT1:
	case L4LB_SCTP_INIT:
		return idle_longer(conn, HALF_OPEN_SPARED);
	case L4LB_TCP_ESTABLISHED:
	case L4LB_SCTP_ESTABLISHED:
	case L4LB_UDP:
		return hardly_used(conn);
	default:
		return false;
	}
}

static enum l4lb_victim_class template_victim(const struct l4lb_conn *conn)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TRUSTED))
		return atomic_read(&conn->n_holders) ? L4LB_VICTIM_NEVER :
						       L4LB_VICTIM_LAST;
	return l4lb_conn_test(conn, L4LB_CONN_ASSURED) ? L4LB_VICTIM_SECOND :
							 L4LB_VICTIM_FIRST;
}

/* Has its client sent so many packets?  Where replies are seen, only a client
 * that has acknowledged one counts: a server answers a forged acknowledgment
 * with a reset.
 */
static bool well_used(const struct l4lb_conn *conn)
{
	return l4lb_conn_packets(conn) >= L4LB_CONN_PACKETS_MANY &&
	       (conn->proto != IPPROTO_TCP ||
		l4lb_conn_test(conn, L4LB_CONN_ACKED) ||
		l4lb_conn_test(conn, L4LB_CONN_NO_OUTPUT));
}

/* A server sends more to an established TCP connection or SCTP association only
 * after its client has repeated what the server sent: the client's address is
 * not forged.  An answer to a datagram proves nothing.
 */
enum l4lb_victim_class l4lb_defence_victim(const struct l4lb_conn *conn)
{
	bool answered = l4lb_conn_test(conn, L4LB_CONN_ANSWERED);

	/* Not for the other director's word is a local one given up. */
	if (l4lb_conn_is_copy(conn))
		return L4LB_VICTIM_FIRST;
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return template_victim(conn);
	switch (READ_ONCE(conn->state)) {
	case L4LB_TCP_ESTABLISHED:
	case L4LB_TCP_FIN_WAIT:
	case L4LB_TCP_CLOSE_WAIT:
	case L4LB_TCP_LAST_ACK:
	case L4LB_SCTP_ESTABLISHED:
	case L4LB_SCTP_SHUTDOWN_SENT:
	case L4LB_SCTP_SHUTDOWN_RECEIVED:
	case L4LB_SCTP_SHUTDOWN_ACK_SENT:
		return answered || well_used(conn) ? L4LB_VICTIM_NEVER :
						     L4LB_VICTIM_SECOND;
	case L4LB_UDP:
		if (well_used(conn))
			return L4LB_VICTIM_NEVER;
		if (answered)
			return L4LB_VICTIM_LAST;
		return l4lb_conn_packets(conn) <= 1 ? L4LB_VICTIM_FIRST :
						      L4LB_VICTIM_SECOND;
	default:
		return L4LB_VICTIM_FIRST;
	}
}

void l4lb_victim_offer(struct l4lb_victim *victim, struct l4lb_conn *conn)
{
	enum l4lb_victim_class class = l4lb_conn_useless(conn) ?
		L4LB_VICTIM_USELESS : l4lb_defence_victim(conn);

	if (l4lb_conn_test(conn, L4LB_CONN_DEAD) || class > victim->class ||
	    class == L4LB_VICTIM_NEVER ||
	    (class == victim->class &&
	     l4lb_conn_idle(conn) < l4lb_conn_idle(victim->conn)))
		return;
	victim->conn = conn;
	victim->class = class;
}

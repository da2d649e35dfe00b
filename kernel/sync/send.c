// SPDX-License-Identifier: GPL-2.0
/*
 * Connections are announced: by their packets, by changes of their state, and
 * by the sweep, see send_rules.c.
 *
 * A record is made and written under the connection's lock, like each change of
 * its state, so other directors learn of changes in their order.  If it cannot
 * be written, the sweep tries again: no packet does.
 */
#include "sync/send.h"

#include "conn/call.h"
#include "conn/copy.h"
#include "conn/count.h"
#include "conn/state.h"
#include "conn/walk.h"
#include "conn/table.h"
#include "forward/reset.h"
#include "sync/queue.h"
#include "sync/send_rules.h"
#include "sync/wire_state.h"

#define PENDING	(BIT(L4LB_CONN_DIRTY) | BIT(L4LB_CONN_DUE))

static u32 wire_flags(const struct l4lb_conn *conn)
{
	int flags = atomic_read(&conn->flags);

	return conn->method |
	       (flags & BIT(L4LB_CONN_INACTIVE) ? L4LB_SYNC_F_INACTIVE : 0) |
	       (flags & BIT(L4LB_CONN_NO_OUTPUT) ? L4LB_SYNC_F_NO_OUTPUT : 0) |
	       (flags & BIT(L4LB_CONN_TEMPLATE) ? L4LB_SYNC_F_TEMPLATE : 0) |
	       (flags & BIT(L4LB_CONN_SYNCED) ? L4LB_SYNC_F_SYNC : 0);
}

/* Of IPv4 only the four bytes that are sent. */
static void fill_addresses(struct l4lb_sync_record *record,
			   const struct l4lb_conn *conn)
{
	if (conn->af == AF_INET) {
		record->caddr.ip = conn->v4.caddr;
		record->vaddr.ip = conn->v4.vaddr;
		record->daddr.ip = conn->server->sched.addr.ip;
	} else {
		record->caddr = l4lb_conn_client(conn);
		record->vaddr = l4lb_conn_vip(conn);
		record->daddr = l4lb_conn_server(conn);
	}
}

/* The timeout is that of the state, not what is left of it.  There are no
 * sequence numbers to adjust.
 */
static void fill_record(struct l4lb_sync_record *record,
			const struct l4lb_conn *conn)
{
	bool template = l4lb_conn_test(conn, L4LB_CONN_TEMPLATE);
	const struct l4lb_call *call = l4lb_conn_call(conn);

	record->af = conn->af;
	record->proto = conn->proto;
	record->flags = wire_flags(conn);
	record->cport = conn->cport;
	record->vport = conn->vport;
	record->dport = conn->dport;
	record->fwmark = l4lb_conn_fwmark(conn);
	fill_addresses(record, conn);
	record->left = 0;
	record->gone = false;
	record->call_len = call ? call->len : 0;
	record->call = call ? call->id : NULL;
	if (template) {
		record->state = l4lb_conn_test(conn, L4LB_CONN_ASSURED);
		record->timeout = READ_ONCE(conn->timeout) / HZ;
	} else {
		record->state = l4lb_sync_state_to(conn->proto,
						   READ_ONCE(conn->state));
		record->timeout = l4lb_state_timeout(conn) / HZ;
	}
}

/* Its time begins when its last connection ends. */
static bool is_held(const struct l4lb_conn *conn)
{
	return l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) &&
	       atomic_read(&conn->n_holders);
}

/* The sweep may send it long after the connection's last packet.  If two directors
 * were master, and have different real servers, a peer goes by the later packet
 * (apply.c); all others skip the option.
 */
static void tell_idle(struct l4lb_sync_record *record,
		      const struct l4lb_conn *conn)
{
	s32 idle = l4lb_conn_idle(conn);

	if (!READ_ONCE(l4lb_conn_net(conn)->sync_trailer) || idle < HZ ||
	    is_held(conn) || l4lb_send_phase(conn) != L4LB_SEND_OPEN)
		return;
	idle = DIV_ROUND_UP(idle, HZ);
	record->left = record->timeout > idle ? record->timeout - idle : 1;
}

/* BH off.  @swept: no packet is the reason. */
static void announce(struct l4lb_conn *conn, bool swept)
{
	struct l4lb_sync_record record;

	lockdep_assert_held(l4lb_conn_lock(conn));
	if (l4lb_conn_test(conn, L4LB_CONN_DEAD))
		return;
	/* What comes later than this sets them again. */
	if (atomic_read(&conn->flags) & PENDING)
		atomic_andnot(PENDING, &conn->flags);
	fill_record(&record, conn);
	if (swept)
		tell_idle(&record, conn);
	if (l4lb_sync_put(l4lb_conn_net(conn), conn, &record))
		l4lb_send_note(conn);
	else
		l4lb_conn_set(conn, L4LB_CONN_DIRTY);
}

static void announce_unlocked(struct l4lb_conn *conn, bool swept)
{
	spin_lock_bh(l4lb_conn_lock(conn));
	announce(conn, swept);
	spin_unlock_bh(l4lb_conn_lock(conn));
}

/* ---- events ---- */

static void living(struct l4lb_conn *conn)
{
	if (l4lb_sync_sends(l4lb_conn_net(conn)) && l4lb_send_owed(conn))
		announce_unlocked(conn, true);
}

/* The count of its packets may say that it is due. */
static bool is_change_due(struct l4lb_conn *conn)
{
	switch (l4lb_send_phase(conn)) {
	case L4LB_SEND_NEW:
		/* Others know an earlier one from this port. */
		l4lb_conn_set_told(conn, 0);
		return false;
	case L4LB_SEND_OPEN:
		return l4lb_conn_test(conn, L4LB_CONN_DUE);
	case L4LB_SEND_CLOSING:
		return true;
	case L4LB_SEND_OVER:
		return l4lb_conn_told(conn);
	default:
		return false;
	}
}

static void changed(struct l4lb_conn *conn)
{
	lockdep_assert_held(l4lb_conn_lock(conn));
	if (is_change_due(conn) && l4lb_sync_sends(l4lb_conn_net(conn)) &&
	    l4lb_send_allowed(conn))
		announce(conn, false);
}

static void held(struct l4lb_conn *template)
{
	if (l4lb_sync_sends(l4lb_conn_net(template)) &&
	    atomic_read(&template->n_holders) == 1 &&
	    l4lb_send_allowed(template))
		announce_unlocked(template, false);
}

static u8 closed_state(u8 proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return L4LB_TCP_CLOSE;
	case IPPROTO_SCTP:
		return L4LB_SCTP_CLOSED;
	default:
		return L4LB_UDP;
	}
}

/* Peers only: ip_vs would take it for a connection's state, even of one that it has
 * taken over.
 */
static bool is_end_told(const struct l4lb_net *ln)
{
	return READ_ONCE(ln->sync_trailer) && READ_ONCE(ln->sysctl.sync_version);
}

static void fill_gone(struct l4lb_sync_record *record,
		      const struct l4lb_conn *conn)
{
	fill_record(record, conn);
	record->timeout = 1;
	record->gone = true;
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return;
	record->flags |= L4LB_SYNC_F_INACTIVE;
	record->state = l4lb_sync_state_to(conn->proto,
					   closed_state(conn->proto));
}

static void ended(struct l4lb_conn *conn)
{
	struct l4lb_sync_record record = { };

	if (!l4lb_sync_sends(l4lb_conn_net(conn)) ||
	    !is_end_told(l4lb_conn_net(conn)) || !l4lb_send_known(conn))
		return;
	spin_lock_bh(l4lb_conn_lock(conn));
	if (!l4lb_conn_test(conn, L4LB_CONN_DEAD)) {
		fill_gone(&record, conn);
		l4lb_sync_put(l4lb_conn_net(conn), conn, &record);
	}
	spin_unlock_bh(l4lb_conn_lock(conn));
}

const struct l4lb_conn_events l4lb_sync_events = {
	.expired	= l4lb_reset_idle,
	.living		= living,
	.changed	= changed,
	.held		= held,
	.ended		= ended,
};

/* ---- packets ---- */

/* The first packet of a copy's client: its template, a copy too, is used here. */
static void use_template(struct l4lb_conn *conn)
{
	spin_lock(l4lb_conn_lock(conn));
	if (!l4lb_conn_test(conn, L4LB_CONN_DEAD) &&
	    l4lb_conn_test(conn, L4LB_CONN_CONTROLLED))
		WRITE_ONCE(conn->control->last, (u32)jiffies);
	spin_unlock(l4lb_conn_lock(conn));
}

static inline bool is_counted(struct l4lb_conn *conn)
{
	if (!l4lb_send_counts(conn) ||
	    l4lb_conn_test(conn, L4LB_CONN_ONE_PACKET))
		return false;
	l4lb_conn_set(conn, L4LB_CONN_DUE);
	return true;
}

static noinline bool copy_counted(struct l4lb_conn *copy)
{
	if (l4lb_conn_packets(copy) == 1)
		use_template(copy);
	return is_counted(copy);
}

bool l4lb_sync_counted(struct l4lb_conn *conn)
{
	if (!l4lb_sync_sends(l4lb_conn_net(conn)))
		return false;
	if (unlikely(l4lb_conn_test(conn, L4LB_CONN_SYNCED)))
		return copy_counted(conn);
	return is_counted(conn);
}

void l4lb_sync_due(struct l4lb_conn *conn)
{
	enum l4lb_send_phase phase = l4lb_send_phase(conn);

	l4lb_conn_clear(conn, L4LB_CONN_DUE);
	if (!l4lb_sync_sends(l4lb_conn_net(conn)) || !l4lb_send_allowed(conn))
		return;
	if (phase == L4LB_SEND_OPEN || phase == L4LB_SEND_CLOSING ||
	    (phase == L4LB_SEND_OVER && l4lb_conn_told(conn)))
		announce_unlocked(conn, false);
}

/* ---- resyncs ---- */

/* Is it established, and more than the first datagram of something? */
static bool is_worth_it(const struct l4lb_conn *conn)
{
	enum l4lb_send_phase phase = l4lb_send_phase(conn);

	return l4lb_send_shared(conn) || phase == L4LB_SEND_CLOSING ||
	       (phase == L4LB_SEND_OPEN && conn->proto != IPPROTO_UDP);
}

bool l4lb_sync_lasts(const struct l4lb_conn *conn)
{
	enum l4lb_send_phase phase = l4lb_send_phase(conn);

	return (phase == L4LB_SEND_OPEN || phase == L4LB_SEND_CLOSING) &&
	       !l4lb_conn_test(conn, L4LB_CONN_ONE_PACKET);
}

static bool is_one_of(const struct l4lb_conn *conn, enum l4lb_sync_which which)
{
	if (which == L4LB_SYNC_WHOLE)
		return l4lb_sync_lasts(conn) && l4lb_send_tellable(conn);
	return (is_worth_it(conn) ||
		(which == L4LB_SYNC_ALSO_OVER &&
		 l4lb_send_phase(conn) == L4LB_SEND_OVER)) &&
	       l4lb_send_possible(conn);
}

bool l4lb_sync_describe(struct l4lb_conn *conn, enum l4lb_sync_which which,
			struct l4lb_sync_record *record)
{
	bool wanted = is_one_of(conn, which);

	if (!wanted)
		return false;
	spin_lock_bh(l4lb_conn_lock(conn));
	wanted = !l4lb_conn_test(conn, L4LB_CONN_DEAD);
	if (wanted) {
		fill_record(record, conn);
		/* One that was taken over is this director's own. */
		if (!l4lb_conn_is_copy(conn))
			record->flags &= ~L4LB_SYNC_F_SYNC;
		/* A copy's is the other director's. */
		record->timeout = max(READ_ONCE(conn->timeout) / HZ, 1U);
		record->left = is_held(conn) ? record->timeout :
			       max(l4lb_conn_left(conn) / HZ, 1U);
	}
	spin_unlock_bh(l4lb_conn_lock(conn));
	return wanted;
}

bool l4lb_sync_announce(struct l4lb_conn *conn)
{
	struct l4lb_sync_record record;
	bool done = true;

	if (!l4lb_send_possible(conn) || !is_worth_it(conn))
		return true;
	spin_lock_bh(l4lb_conn_lock(conn));
	if (!l4lb_conn_test(conn, L4LB_CONN_DEAD)) {
		fill_record(&record, conn);
		done = l4lb_sync_put(l4lb_conn_net(conn), conn, &record);
	}
	spin_unlock_bh(l4lb_conn_lock(conn));
	return done;
}

/* Those that an earlier daemon has announced may be unknown by now. */
void l4lb_sync_send_begin(struct l4lb_net *ln)
{
	l4lb_conn_tell_again(ln);
}

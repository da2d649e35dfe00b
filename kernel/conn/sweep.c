// SPDX-License-Identifier: GPL-2.0
/*
 * Removal of expired connections.
 *
 * Connections have no timers.  A packet's lookup compares times, so expiry is
 * exact for traffic.  A sweep visits the whole table about once a second, in
 * slices, and removes expired connections, so counters are at most that late.
 * In a large table that would cost more than it frees, so its sweep is slower:
 * four seconds for a million connections, and never more than 16.
 *
 * Any processor may do it: the one that has begun it is often the one that a flood
 * keeps busy.
 */
#include "conn/sweep.h"

#include <linux/random.h>
#include <linux/sched.h>

#include "base/drop.h"
#include "conn/alarm.h"
#include "conn/bucket.h"
#include "conn/defence.h"
#include "conn/resize.h"
#include "conn/share.h"
#include "conn/watch.h"

#define SWEEP_INTERVAL	(HZ / 4)	/* jiffies between slices */
#define SWEEP_SLICES	4		/* slices for a full pass */
#define SWEEP_SLICES_MAX 64		/* for a large table, likewise */
#define SWEEP_LARGE	BIT(18)	/* up to this size: swept every second */
#define SWEEP_BATCH	128		/* buckets per RCU section */
#define OVER_DELAY	(HZ / 50)	/* collects removed servers */
#define DROP_PART_BITS	7		/* a 32nd a second, by SWEEP_INTERVAL */

void l4lb_conn_sweep_begin(struct l4lb_conn_table *table)
{
	if (!atomic_xchg(&table->sweeping, 1))
		queue_delayed_work(system_unbound_wq, &table->sweep,
				   SWEEP_INTERVAL);
}

/* The last packet of a template that is held may be so long ago that its 32-bit
 * time would look new again.
 */
static void keep_age(struct l4lb_conn *conn)
{
	if ((u32)l4lb_conn_idle(conn) > L4LB_CONN_TIMEOUT_MAX)
		WRITE_ONCE(conn->last, (u32)jiffies - L4LB_CONN_TIMEOUT_MAX);
}

/* Returns false if @conn lives on. */
static bool expire(struct l4lb_conn_table *table, struct l4lb_conn *conn)
{
	if (!l4lb_conn_due(conn)) {
		if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
			keep_age(conn);
		if (static_branch_unlikely(&l4lb_conn_watched))
			table->events->living(conn);
		return false;
	}
	table->events->expired(conn);
	l4lb_conn_kill(conn, L4LB_END_EXPIRED);
	return true;
}

static bool sweep_conn(struct l4lb_conn *conn, void *arg)
{
	return expire(arg, conn);
}

static bool drop_conn(struct l4lb_conn *conn, void *arg)
{
	struct l4lb_conn_table *table = arg;

	if (l4lb_conn_test(conn, L4LB_CONN_DEAD) ||
	    !l4lb_defence_drops_entry(conn))
		return false;
	l4lb_drop(table->ln, L4LB_DROP_ENTRY);
	l4lb_conn_end_early(conn, L4LB_END_EVICTED);
	return true;
}

static bool remove_over(struct l4lb_conn *conn, void *arg)
{
	if (!l4lb_server_over(conn->server))
		return false;
	l4lb_conn_end_early(conn, L4LB_END_LOST);
	return true;
}

/* Visits the hashes from @at up to @end, or all if both are 0; may sleep. */
static void visit(struct l4lb_conn_table *table, u64 at, u64 end,
		  l4lb_conn_visit_fn *fn)
{
	unsigned int i;
	u64 last;

	do {
		rcu_read_lock();
		i = 0;
		do {
			last = l4lb_conn_table_range_end(table, at);
			l4lb_conn_table_visit(table, at, last, fn, table);
			at = last + 1;
		} while (at != end && ++i < SWEEP_BATCH);
		rcu_read_unlock();
		cond_resched();
	} while (at != end);
}

/* Number of hashes in a slice: a power of two, so that it consists of whole
 * buckets.
 */
static u64 slice_size(const struct l4lb_conn_table *table)
{
	unsigned int n = atomic_read(&table->n), slices;

	BUILD_BUG_ON(ilog2(SWEEP_SLICES_MAX) > L4LB_STRIPE_BITS);
	slices = clamp_t(unsigned int, n / (SWEEP_LARGE / SWEEP_SLICES),
			 SWEEP_SLICES, SWEEP_SLICES_MAX);
	return 1ULL << (64 - order_base_2(slices));
}

static void sweep_slice(struct l4lb_conn_table *table)
{
	u64 at = table->sweep_at, end = at + slice_size(table);

	visit(table, at, end, sweep_conn);
	table->sweep_at = end;
}

/* drop_entry drops entries from 1/32 of the table each second, as ip_vs does: an
 * attack must not make it look at all of them.  Each part begins at random, so
 * that no entry is safe for long.
 */
static void drop_slice(struct l4lb_conn_table *table)
{
	const u64 size = 1ULL << (64 - DROP_PART_BITS);
	u64 at = get_random_u64() & ~(size - 1);

	BUILD_BUG_ON(DROP_PART_BITS > L4LB_STRIPE_BITS);
	if (l4lb_defence_works(&table->ln->sysctl.drop_entry))
		visit(table, at, at + size, drop_conn);
}

static void sweep_work(struct work_struct *work)
{
	struct l4lb_conn_table *table = container_of(to_delayed_work(work),
						     struct l4lb_conn_table,
						     sweep);
	bool alarm;

	sweep_slice(table);
	drop_slice(table);
	alarm = l4lb_conn_alarm_look(table);
	rcu_read_lock();
	l4lb_conn_resize_check(table);
	rcu_read_unlock();
	if (!atomic_read(&table->n) && !alarm) {
		l4lb_conn_table_idle(table);
		atomic_set(&table->sweeping, 0);
		smp_mb__after_atomic();	/* before n: l4lb_conn_sweep_kick() */
		if (!atomic_read(&table->n) ||
		    atomic_xchg(&table->sweeping, 1))
			return;
	}
	queue_delayed_work(system_unbound_wq, &table->sweep,
			   SWEEP_INTERVAL);
}

/* Visits the whole table, holding no lock that others wait for. */
static void over_work(struct work_struct *work)
{
	visit(container_of(to_delayed_work(work), struct l4lb_conn_table, over),
	      0, 0, remove_over);
}

/* Nobody waits for it: one visit does for all servers removed meanwhile. */
void l4lb_conn_sweep_over(struct l4lb_conn_table *table)
{
	queue_delayed_work(system_unbound_wq, &table->over, OVER_DELAY);
}

void l4lb_conn_sweep_init(struct l4lb_conn_table *table)
{
	INIT_DELAYED_WORK(&table->sweep, sweep_work);
	INIT_DELAYED_WORK(&table->over, over_work);
}

/* Context: may sleep; no packet can start it again. */
void l4lb_conn_sweep_stop(struct l4lb_conn_table *table)
{
	cancel_delayed_work_sync(&table->sweep);
	cancel_delayed_work_sync(&table->over);
}

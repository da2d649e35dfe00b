// SPDX-License-Identifier: GPL-2.0
/*
 * The connection table of a namespace: created with its first service, limited
 * to conn_max entries, emptied when the namespace ends.  See find.h for
 * lookup, insert.h and bucket.c for insertion, resize.c for the size, sweep.c for expiry.
 */
#include "conn/table.h"

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "base/drop.h"
#include "conn/admit.h"
#include "conn/alarm.h"
#include "conn/bucket.h"
#include "conn/count.h"
#include "conn/defence.h"
#include "conn/hash.h"
#include "conn/missed.h"
#include "conn/resize.h"
#include "conn/share.h"
#include "conn/sweep.h"
#include "conn/watch.h"

#define TAB_BITS_MIN	8
#define TAB_BITS_MAX	27
#define TAB_BITS_START	15		/* of a new table, at most */
#define ENTRY_BITS	9		/* log2: bytes per ip_vs connection */
#define BUCKET_BITS	2		/* log2: connections per bucket here */
#define VISIT_BATCH	128		/* buckets per RCU section */
#define EVICT_LOOKS	64		/* connections to choose from */
#define EVICT_RANGES	1024		/* buckets searched for them */
#define QUOTA_PART	4		/* of conn_max, templates; half-open */

static int conn_tab_bits __ro_after_init = 12;
module_param(conn_tab_bits, int, 0444);
MODULE_PARM_DESC(conn_tab_bits, "size of a namespace's connection table to begin with, as a power of two: 8 to 27, or as memory allows; it grows by itself");

/* Idempotent; configuration mutex held. */
int l4lb_conn_table_create(struct l4lb_net *ln,
			   const struct l4lb_conn_events *events)
{
	struct l4lb_conn_table *table;
	unsigned int i;

	lockdep_assert_held(&ln->lock);
	if (rcu_access_pointer(ln->conns))
		return 0;
	table = kvzalloc(sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	table->ln = ln;
	table->events = events;
	table->bits_min = max(min(conn_tab_bits, TAB_BITS_START) - BUCKET_BITS,
			      (int)L4LB_STRIPE_BITS);
	table->missed = alloc_percpu(struct l4lb_conn_missed);
	if (!table->missed || l4lb_conn_resize_init(table)) {
		free_percpu(table->missed);
		kvfree(table);
		return -ENOMEM;
	}
	get_random_bytes(&table->key, sizeof(table->key));
	table->start = hash_start(&table->key);
	/* Not ARRAY_SIZE(): without SMP a lock has size 0. */
	for (i = 0; i < 1 << L4LB_STRIPE_BITS; i++)
		spin_lock_init(&table->locks[i].lock);
	l4lb_conn_sweep_init(table);
	l4lb_conn_share_join();
	rcu_assign_pointer(ln->conns, table);
	return 0;
}

static struct l4lb_conn_table *table_locked(struct l4lb_net *ln)
{
	return rcu_dereference_protected(ln->conns,
					 lockdep_is_held(&ln->lock));
}

/* Call @fn for every connection; may sleep.  Connections that are added
 * meanwhile may be missed.
 */
static void for_each_conn(struct l4lb_conn_table *table, l4lb_conn_visit_fn *fn)
{
	u64 at = 0, last;
	unsigned int i;

	do {
		rcu_read_lock();
		i = 0;
		do {
			last = l4lb_conn_table_range_end(table, at);
			l4lb_conn_table_visit(table, at, last, fn, NULL);
			at = last + 1;
		} while (at && ++i < VISIT_BATCH);
		rcu_read_unlock();
		cond_resched();
	} while (at);
}

static bool kill(struct l4lb_conn *conn, void *arg)
{
	l4lb_conn_kill(conn, L4LB_END_UNSPEC);	/* nobody is told */
	return true;
}

/* Kill all connections.  No packet may create one meanwhile: hooks are gone. */
static void conn_flush(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table = table_locked(ln);

	while (table && atomic_read(&table->n))
		for_each_conn(table, kill);
}

static bool forget_told(struct l4lb_conn *conn, void *arg)
{
	l4lb_conn_set_told(conn, 0);
	return true;
}

/* The table stays as long as the namespace, and so does whoever calls. */
void l4lb_conn_tell_again(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table;

	rcu_read_lock();
	table = rcu_dereference(ln->conns);
	rcu_read_unlock();
	if (table)
		for_each_conn(table, forget_told);
}

void l4lb_conn_remove_over(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table = table_locked(ln);

	if (table)
		l4lb_conn_sweep_over(table);
}

/* Empties the table for good; configuration mutex held.  No packet and no reader
 * can find it any more.
 */
void l4lb_conn_table_stop(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table = table_locked(ln);

	if (!table)
		return;
	l4lb_conn_sweep_stop(table);
	conn_flush(ln);
}

/* Call it a grace period after l4lb_conn_table_stop(). */
void l4lb_conn_table_destroy(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table;

	table = rcu_replace_pointer(ln->conns, NULL, ln->exiting);
	if (!table)
		return;
	l4lb_conn_share_leave(table);
	l4lb_conn_resize_exit(table);
	free_percpu(table->missed);
	kvfree(table);
}

/* The size asked for counts, even if the array is still smaller: it grows with
 * the connections, so chains never get longer than in an array of that size.
 */
unsigned int l4lb_conn_table_size(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table;
	unsigned int bits, wanted = conn_tab_bits;

	rcu_read_lock();
	table = rcu_dereference(ln->conns);
	if (table) {
		bits = 64 - rcu_dereference(table->array)->shift;
		if (bits > table->bits_min)
			wanted = max(wanted, bits + BUCKET_BITS);
	}
	rcu_read_unlock();
	return 1U << wanted;
}

/* The limits of ip_vs: at chains of four, connections fill half the memory. */
void __init l4lb_conn_table_param(void)
{
	int bits = order_base_2(totalram_pages()) + PAGE_SHIFT - 1 - 2 -
		   ENTRY_BITS;

	conn_tab_bits = clamp(conn_tab_bits, TAB_BITS_MIN,
			      clamp(bits, TAB_BITS_MIN, TAB_BITS_MAX));
}

/* ---- conn_max, conn_max_all ---- */

/* What is searched for, and the best found. */
struct search {
	unsigned int		kind;	/* flag: templates, half-open; 0: any */
	struct l4lb_victim	victim;
};

/* Return: always true, since each call counts as a look. */
static bool choose(struct l4lb_conn *conn, void *arg)
{
	struct search *search = arg;

	if (!search->kind || l4lb_conn_test(conn, search->kind))
		l4lb_victim_offer(&search->victim, conn);
	return true;
}

/* Kills a victim; one that is useless was not evicted. */
void l4lb_conn_table_give_up(struct l4lb_conn_table *table, struct l4lb_conn *conn)
{
	if (l4lb_conn_useless(conn)) {
		l4lb_conn_kill(conn, l4lb_server_over(conn->server) ?
			       L4LB_END_LOST : L4LB_END_EXPIRED);
		return;
	}
	l4lb_drop(table->ln, L4LB_DROP_EVICTED);
	l4lb_conn_end_early(conn, L4LB_END_EVICTED);
}

/* Makes room for a connection with @hash: kills the best victim of @kind among
 * a few next to it, or in the first bucket that has one of the first class.
 */
static bool evict(struct l4lb_conn_table *table, u64 hash, unsigned int kind)
{
	struct search search = { .kind = kind };
	unsigned int i, looks = 0;
	u64 last;

	l4lb_victim_init(&search.victim);
	for (i = 0; i < EVICT_RANGES && looks < EVICT_LOOKS &&
	     search.victim.class > L4LB_VICTIM_FIRST; i++) {
		last = l4lb_conn_table_range_end(table, hash);
		looks += l4lb_conn_table_visit(table, hash, last, choose,
					       &search);
		hash = last + 1;
	}
	if (!search.victim.conn)
		return false;
	l4lb_conn_table_give_up(table, search.victim.conn);
	return true;
}

bool l4lb_conn_table_evict_equal(struct l4lb_conn_table *table,
				 const struct l4lb_conn *conn)
{
	struct l4lb_conn *victim = l4lb_conn_equal_victim(table, conn);

	if (victim)
		l4lb_conn_table_give_up(table, victim);
	return victim;
}

/* The share of @max that templates, or half-open connections, may have. */
static int quota(int max)
{
	return max(max / QUOTA_PART, L4LB_CONN_QUOTA_LEAST);
}

/* A connection is not refused for the quota of half-open ones: an honest client
 * begins with one, too.  Without room in the share of all namespaces one of this
 * namespace goes, as at its own limit.
 */
bool l4lb_conn_table_admit_near(struct l4lb_conn_table *table,
				const struct l4lb_flow *flow, bool template, int n)
{
	int max = READ_ONCE(table->ln->sysctl.conn_max);
	bool room = l4lb_conn_share_allows(table, n), gone = false;
	u64 hash;

	if (template)
		atomic_inc(&table->n_templates);
	if (!max)
		max = INT_MAX;
	if (template && atomic_read(&table->n_templates) > quota(max)) {
		hash = l4lb_conn_table_hash(table, flow, true);
		gone = evict(table, hash, L4LB_CONN_TEMPLATE);
		if (!gone)
			goto refuse;
	} else if (!template && l4lb_conn_begins_half_open(flow->proto) &&
		   atomic_read(&table->n_half_open) >= quota(max)) {
		l4lb_conn_alarm(table, L4LB_ALARM_FLOOD);
		hash = l4lb_conn_table_hash(table, flow, false);
		gone = evict(table, hash, L4LB_CONN_HALF_OPEN);
	}
	if (n > max || !room)
		l4lb_conn_alarm(table, L4LB_ALARM_FULL);
	if ((n - gone <= max && (room || gone)) ||
	    evict(table, l4lb_conn_table_hash(table, flow, template), 0))
		return true;
refuse:
	l4lb_conn_table_release(table, template);
	return false;
}

bool l4lb_conn_table_admit_copy(struct l4lb_conn_table *table, bool template)
{
	int max = READ_ONCE(table->ln->sysctl.conn_max) ?: INT_MAX;
	int n = atomic_inc_return(&table->n);

	if (template)
		atomic_inc(&table->n_templates);
	if (n <= max && l4lb_conn_share_allows(table, n) &&
	    (!template || atomic_read(&table->n_templates) <= quota(max)))
		return true;
	l4lb_conn_table_release(table, template);
	return false;
}

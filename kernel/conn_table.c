// SPDX-License-Identifier: GPL-2.0
/*
 * The connection table of a namespace: an rhashtable of tuples, one for the
 * client's direction of every connection and one more for the replies of a
 * NATed one.  It grows and shrinks by itself.
 *
 * Connections have no timers.  A packet's lookup compares times, so expiry is
 * exact for traffic; a sweep visits the whole table about once a second, in
 * slices, and removes what has expired, so counters are at most that late.
 */
#include "conn_table.h"
#include "defence.h"

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "reset.h"

#define SWEEP_INTERVAL	(HZ / 4)	/* jiffies between slices */
#define SWEEP_SLICES	4		/* slices for a full pass */
#define SWEEP_BATCH	512		/* tuples per RCU section */
#define TAB_BITS_MIN	8
#define TAB_BITS_MAX	27
#define TAB_BITS_START	15		/* of a table that is made */
#define ENTRY_BITS	9		/* of a connection of ip_vs, in bytes */

static int conn_tab_bits __ro_after_init = 12;
module_param(conn_tab_bits, int, 0444);
MODULE_PARM_DESC(conn_tab_bits, "size of a namespace's connection table to begin with, as a power of two: 8 to 27, or as memory allows; it grows by itself");

struct l4lb_conn_table {
	struct rhashtable	ht;
	struct delayed_work	sweep;
	struct rhashtable_iter	iter;
	atomic_t		sweeping;
};

static const struct rhashtable_params tuple_params = {
	.head_offset		= offsetof(struct l4lb_tuple, node),
	.key_offset		= offsetof(struct l4lb_tuple, saddr),
	.key_len		= offsetofend(struct l4lb_tuple, zero) -
				  offsetof(struct l4lb_tuple, saddr),
	.automatic_shrinking	= true,
};

static struct l4lb_conn *tuple_conn(struct l4lb_tuple *tuple)
{
	if (tuple->dir == L4LB_DIR_OUT)
		return container_of(tuple, struct l4lb_conn, out);
	return container_of(tuple, struct l4lb_conn, in);
}

/* RCU.  Returns an expired connection, too. */
struct l4lb_conn *l4lb_conn_table_find(struct l4lb_net *ln,
				       const struct l4lb_tuple *key)
{
	struct l4lb_conn_table *table = rcu_dereference(ln->conns);
	struct l4lb_tuple *tuple;

	if (!table)
		return NULL;
	tuple = rhashtable_lookup(&table->ht, &key->saddr, tuple_params);
	return tuple ? tuple_conn(tuple) : NULL;
}

static void sweep_kick(struct l4lb_conn_table *table)
{
	if (!atomic_read(&table->sweeping) &&
	    !atomic_xchg(&table->sweeping, 1))
		queue_delayed_work(system_power_efficient_wq, &table->sweep,
				   SWEEP_INTERVAL);
}

/*
 * RCU, BH off.  Returns NULL if @conn is in the table now, the connection
 * that has its key already, or an ERR_PTR().  Reply tuples may collide (one
 * client socket that reaches a real server through two VIPs): the table keeps
 * both, and the first match gets the replies, as it is with ip_vs.
 */
struct l4lb_conn *l4lb_conn_table_insert(struct l4lb_conn *conn)
{
	struct l4lb_conn_table *table = rcu_dereference(conn->ln->conns);
	struct l4lb_tuple *old;
	int err;

	if (!table)
		return ERR_PTR(-ENOENT);
	if (l4lb_conn_has_out(conn)) {
		err = rhashtable_insert_fast(&table->ht, &conn->out.node,
					     tuple_params);
		if (err)
			return ERR_PTR(err);
	}
	old = rhashtable_lookup_get_insert_fast(&table->ht, &conn->in.node,
						tuple_params);
	if (old && l4lb_conn_has_out(conn))
		rhashtable_remove_fast(&table->ht, &conn->out.node,
				       tuple_params);
	if (IS_ERR(old))
		return ERR_CAST(old);
	if (old)
		return tuple_conn(old);
	sweep_kick(table);
	return NULL;
}

void l4lb_conn_table_remove(struct l4lb_conn *conn)
{
	struct l4lb_conn_table *table;

	rcu_read_lock();
	table = rcu_dereference(conn->ln->conns);
	rhashtable_remove_fast(&table->ht, &conn->in.node, tuple_params);
	if (l4lb_conn_has_out(conn))
		rhashtable_remove_fast(&table->ht, &conn->out.node,
				       tuple_params);
	rcu_read_unlock();
}

/* Returns false if @conn lives on. */
static bool expire(struct l4lb_conn *conn)
{
	if (!l4lb_conn_due(conn))
		return false;
	l4lb_reset_idle(conn);
	l4lb_conn_kill(conn);
	return true;
}

static void sweep_conn(struct l4lb_conn *conn)
{
	struct l4lb_net *ln = conn->ln;

	if (expire(conn) || !l4lb_defence_works(&ln->sysctl.drop_entry) ||
	    !l4lb_defence_drops_entry(conn))
		return;
	l4lb_drop(ln, L4LB_DROP_ENTRY);
	l4lb_conn_kill(conn);
}

/* Visit up to @budget tuples; returns false at the end of the table. */
static bool sweep_slice(struct l4lb_conn_table *table, unsigned int budget)
{
	struct l4lb_tuple *tuple = NULL;
	unsigned int batch;
	bool more = true;

	while (budget && more) {
		batch = min_t(unsigned int, budget, SWEEP_BATCH);
		budget -= batch;
		rhashtable_walk_start(&table->iter);
		while (batch--) {
			tuple = rhashtable_walk_next(&table->iter);
			if (!tuple) {
				more = false;
				break;
			}
			/* -EAGAIN: the table was resized, some come twice */
			if (!IS_ERR(tuple) && tuple->dir != L4LB_DIR_OUT)
				sweep_conn(tuple_conn(tuple));
		}
		rhashtable_walk_stop(&table->iter);
		cond_resched();
	}
	return more;
}

static void sweep_work(struct work_struct *work)
{
	struct l4lb_conn_table *table =
		container_of(work, struct l4lb_conn_table, sweep.work);
	unsigned int n = atomic_read(&table->ht.nelems);

	if (!sweep_slice(table, n / SWEEP_SLICES + SWEEP_BATCH)) {
		rhashtable_walk_exit(&table->iter);
		rhashtable_walk_enter(&table->ht, &table->iter);
	}
	if (!atomic_read(&table->ht.nelems)) {
		atomic_set(&table->sweeping, 0);
		smp_mb__after_atomic();	/* before nelems: sweep_kick() */
		if (!atomic_read(&table->ht.nelems) ||
		    atomic_xchg(&table->sweeping, 1))
			return;
	}
	queue_delayed_work(system_power_efficient_wq, &table->sweep,
			   SWEEP_INTERVAL);
}

/* Idempotent; configuration mutex held. */
int l4lb_conn_table_create(struct l4lb_net *ln)
{
	struct rhashtable_params params = tuple_params;
	struct l4lb_conn_table *table;
	int err;

	/* Full at three quarters; both are 16 bits wide. */
	params.min_size = 1 << min(conn_tab_bits, TAB_BITS_START);
	params.nelem_hint = params.min_size / 4 * 3;

	lockdep_assert_held(&ln->lock);
	if (rcu_access_pointer(ln->conns))
		return 0;
	table = kzalloc(sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	err = rhashtable_init(&table->ht, &params);
	if (err) {
		kfree(table);
		return err;
	}
	INIT_DELAYED_WORK(&table->sweep, sweep_work);
	rhashtable_walk_enter(&table->ht, &table->iter);
	rcu_assign_pointer(ln->conns, table);
	return 0;
}

/* Call @fn for every connection; may sleep.  Connections that are added
 * meanwhile may be missed, and so may neighbours of one that is removed: after
 * a pause the walk goes on by counting from the head of its bucket.
 *
 * Return: how often @fn said true.
 */
static unsigned int for_each_conn(struct l4lb_conn_table *table,
				  bool (*fn)(struct l4lb_conn *conn))
{
	struct rhashtable_iter iter;
	unsigned int n = 0, hits = 0;
	struct l4lb_tuple *tuple;

	rhashtable_walk_enter(&table->ht, &iter);
	rhashtable_walk_start(&iter);
	while ((tuple = rhashtable_walk_next(&iter))) {
		if (!IS_ERR(tuple) && tuple->dir != L4LB_DIR_OUT)
			hits += fn(tuple_conn(tuple));
		if (++n % SWEEP_BATCH == 0) {
			rhashtable_walk_stop(&iter);
			cond_resched();
			rhashtable_walk_start(&iter);
		}
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
	return hits;
}

static struct l4lb_conn_table *table_locked(struct l4lb_net *ln)
{
	return rcu_dereference_protected(ln->conns,
					 lockdep_is_held(&ln->lock));
}

static bool kill(struct l4lb_conn *conn)
{
	l4lb_conn_kill(conn);
	return true;
}

/* Kill all connections.  No packet may create one meanwhile: hooks are gone. */
void l4lb_conn_flush(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table = table_locked(ln);

	if (!table)
		return;
	while (atomic_read(&table->ht.nelems))
		for_each_conn(table, kill);
}

static bool kill_if_nodest(struct l4lb_conn *conn)
{
	/* A service that says what it wants is asked by the next packet. */
	return !l4lb_real_available(conn->real) &&
	       READ_ONCE(conn->real->on_loss) == L4LB_LOSS_DEFAULT &&
	       kill(conn);
}

void l4lb_conn_expire_nodest(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table = table_locked(ln);

	while (table && for_each_conn(table, kill_if_nodest))
		;	/* until a walk that nothing was removed from */
}

/* Configuration mutex held; no packet and no reader can see it any more. */
void l4lb_conn_table_destroy(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table = table_locked(ln);

	if (!table)
		return;
	cancel_delayed_work_sync(&table->sweep);
	l4lb_conn_flush(ln);
	RCU_INIT_POINTER(ln->conns, NULL);
	synchronize_rcu();
	rhashtable_walk_exit(&table->iter);
	rhashtable_destroy(&table->ht);
	kfree(table);
}

/* What was asked for counts before it is there: as connections come, chains
 * never get longer than they would be with it.
 */
unsigned int l4lb_conn_table_size(struct l4lb_net *ln)
{
	struct l4lb_conn_table *table;
	unsigned int size = 0;

	rcu_read_lock();
	table = rcu_dereference(ln->conns);
	if (table)
		size = rht_dereference_rcu(table->ht.tbl, &table->ht)->size;
	rcu_read_unlock();
	return max(size, 1U << conn_tab_bits);
}

/* The bounds of ip_vs: four connections in a chain may take half of the memory. */
void __init l4lb_conn_table_init(void)
{
	int bits = order_base_2(totalram_pages()) + PAGE_SHIFT - 1 - 2 -
		   ENTRY_BITS;

	conn_tab_bits = clamp(conn_tab_bits, TAB_BITS_MIN,
			      clamp(bits, TAB_BITS_MIN, TAB_BITS_MAX));
}

/* Listings.  An open walk keeps its place between two read() calls. */
struct l4lb_conn_walk {
	struct l4lb_conn_table	*table;
	struct rhashtable_iter	iter;
};

/* Process context.  Returns NULL without memory.  The table outlives it: a
 * walk belongs to an open file, which holds the namespace.
 */
struct l4lb_conn_walk *l4lb_conn_walk_open(struct l4lb_net *ln)
{
	struct l4lb_conn_walk *walk = kzalloc(sizeof(*walk), GFP_KERNEL);

	if (!walk)
		return NULL;
	rcu_read_lock();
	walk->table = rcu_dereference(ln->conns);
	rcu_read_unlock();
	if (walk->table)
		rhashtable_walk_enter(&walk->table->ht, &walk->iter);
	return walk;
}

void l4lb_conn_walk_close(struct l4lb_conn_walk *walk)
{
	if (walk->table)
		rhashtable_walk_exit(&walk->iter);
	kfree(walk);
}

void l4lb_conn_walk_start(struct l4lb_conn_walk *walk)
	__acquires(RCU)
{
	if (walk->table)
		rhashtable_walk_start(&walk->iter);
	else
		rcu_read_lock();
}

void l4lb_conn_walk_stop(struct l4lb_conn_walk *walk)
	__releases(RCU)
{
	if (walk->table)
		rhashtable_walk_stop(&walk->iter);
	else
		rcu_read_unlock();
}

struct l4lb_conn *l4lb_conn_walk_next(struct l4lb_conn_walk *walk)
{
	struct l4lb_tuple *tuple;

	if (!walk->table)
		return NULL;
	while ((tuple = rhashtable_walk_next(&walk->iter))) {
		/* -EAGAIN: resized, the walk starts over; rows may repeat */
		if (IS_ERR(tuple) || tuple->dir == L4LB_DIR_OUT)
			continue;
		if (l4lb_conn_alive(tuple_conn(tuple)))
			return tuple_conn(tuple);
	}
	return NULL;
}

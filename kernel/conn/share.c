// SPDX-License-Identifier: GPL-2.0
/*
 * One limit for the connections of all namespaces: the module parameter
 * conn_max_all.
 *
 *	|<------------------ conn_max_all ------------------>|
 *	|   share   |   share   |     whoever comes first     |
 *	|<------ half of it ----|
 *
 * Half of it is divided equally among the namespaces that have had a service.
 * Beyond its share a namespace may take what is left when the shares of all
 * others are taken for used, though they may not be.  So floods in some
 * namespaces leave room in each other one, and no connection of another
 * namespace is evicted for them.
 *
 * A connection writes no line that namespaces share: a table takes and returns
 * whole blocks, and single places only near the limit.
 */
#include "conn/share.h"

#include <linux/mm.h>
#include <linux/moduleparam.h>

#define SHARE_BLOCK	64		/* connections */
#define MEMORY_PART	4		/* of the memory, by default */
#define CONN_BYTES	128		/* of a connection, table included */
#define UNSET		UINT_MAX

static unsigned int conn_max_all = UNSET;

static int set_max(const char *value, const struct kernel_param *kp)
{
	return param_set_uint_minmax(value, kp, 0, INT_MAX);
}

static const struct kernel_param_ops max_ops = {
	.set	= set_max,
	.get	= param_get_uint,
};

module_param_cb(conn_max_all, &max_ops, &conn_max_all, 0644);
MODULE_PARM_DESC(conn_max_all, "maximum of connections and persistence templates of all network namespaces together, 0: no limit (default: what a quarter of the memory holds)");

static atomic_t granted_all = ATOMIC_INIT(0);	/* to all tables */
static atomic_t n_tables = ATOMIC_INIT(0);

/* May a table with @granted places get @more, while all have @total? */
static bool fits(u64 granted, u64 total, u64 more)
{
	u64 max = READ_ONCE(conn_max_all) ?: INT_MAX;
	u64 n = max(atomic_read(&n_tables), 1);
	u64 share = div64_u64(max, 2 * n);

	if (total + more > max)
		return false;
	return granted + more <= share ||
	       total + more <= max - share * (n - 1);
}

static bool take(struct l4lb_conn_table *table, unsigned int more)
{
	int total = atomic_read(&granted_all);

	do {
		if (!fits(atomic_read(&table->granted), total, more))
			return false;
	} while (!atomic_try_cmpxchg(&granted_all, &total, total + more));
	atomic_add(more, &table->granted);
	return true;
}

/**
 * l4lb_conn_share_take() - let a table have more connections
 * @table: the table
 * @n: the number it is about to have
 *
 * Context: any.
 * Return: false if the limit for all namespaces does not allow that.
 */
bool l4lb_conn_share_take(struct l4lb_conn_table *table, unsigned int n)
{
	int missing = n - atomic_read(&table->granted);

	/* Several CPUs may take a block at once: table_release() returns what
	 * is too much.
	 */
	return missing <= 0 || take(table, max(missing, SHARE_BLOCK)) ||
	       take(table, missing);
}

/**
 * l4lb_conn_table_release() - give back the place of a connection
 * @table: the table
 * @template: of a template
 *
 * Context: any.
 */
void l4lb_conn_table_release(struct l4lb_conn_table *table, bool template)
{
	int granted, n = atomic_dec_return(&table->n);

	if (template)
		atomic_dec(&table->n_templates);
	granted = atomic_read(&table->granted);
	/* Keep a block, so that a few connections do not cause much traffic. */
	if (likely(granted - n < 2 * SHARE_BLOCK))
		return;
	if (atomic_try_cmpxchg(&table->granted, &granted,
			       granted - SHARE_BLOCK))
		atomic_sub(SHARE_BLOCK, &granted_all);
}

/* The table is empty.  A connection that comes meanwhile takes a block again. */
void l4lb_conn_table_idle(struct l4lb_conn_table *table)
{
	atomic_sub(atomic_xchg(&table->granted, 0), &granted_all);
}

void l4lb_conn_share_join(void)
{
	atomic_inc(&n_tables);
}

/* @table is empty and no packet sees it. */
void l4lb_conn_share_leave(struct l4lb_conn_table *table)
{
	l4lb_conn_table_idle(table);
	atomic_dec(&n_tables);
}

void __init l4lb_conn_share_init(void)
{
	u64 bytes = (u64)totalram_pages() << PAGE_SHIFT;

	if (conn_max_all == UNSET)
		conn_max_all = min_t(u64, bytes / MEMORY_PART / CONN_BYTES,
				     INT_MAX);
}

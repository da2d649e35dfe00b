// SPDX-License-Identifier: GPL-2.0
/*
 * Listings.  Between two read() or recv() calls an open walk keeps its place as
 * a hash.  Connections are listed in the order of their hashes, which a resize
 * does not change.  So each that exists all the time is listed once, and to go
 * on takes no longer than to begin.
 */
#include "conn/walk.h"

#include <linux/slab.h>

#include "conn/bucket.h"
#include "conn/lookup.h"

/* Connections collected at a time: usually all of a bucket. */
#define ROWS	32
/* Buckets between two breaks. */
#define BUCKETS	1024

struct row {
	u64			hash;
	struct l4lb_conn	*conn;
};

/**
 * struct l4lb_conn_walk - an open walk
 * @table: table, or NULL
 * @at: all connections with a lower hash have been shown
 * @done: there are no more
 * @filled: @rows holds the connections from @at to @last
 * @last: hash
 * @n: number of rows, in the order of their hashes
 * @next: next row to show
 * @visited: buckets since the last break
 * @rows: one connection each
 */
struct l4lb_conn_walk {
	const struct l4lb_conn_table	*table;
	u64				at;
	bool				done, filled;
	u64				last;
	unsigned int			n, next;
	unsigned int			visited;
	struct row			rows[ROWS];
};

/* Process context.  Returns NULL without memory.  The table outlives the walk,
 * which belongs to an open file that is closed when the namespace ends, or to a
 * dump whose socket holds the namespace.
 */
struct l4lb_conn_walk *l4lb_conn_walk_open(struct l4lb_net *ln)
{
	struct l4lb_conn_walk *walk = kzalloc(sizeof(*walk), GFP_KERNEL);

	if (!walk)
		return NULL;
	rcu_read_lock();
	walk->table = rcu_dereference(ln->conns);
	rcu_read_unlock();
	walk->done = !walk->table;
	return walk;
}

void l4lb_conn_walk_rewind(struct l4lb_conn_walk *walk)
{
	walk->at = 0;
	walk->done = !walk->table;
	walk->filled = false;
	walk->n = 0;
	walk->next = 0;
}

unsigned int l4lb_conn_walk_total(const struct l4lb_conn_walk *walk)
{
	return walk->table ? atomic_read(&walk->table->n) : 0;
}

void l4lb_conn_walk_close(struct l4lb_conn_walk *walk)
{
	kfree(walk);
}

void l4lb_conn_walk_start(struct l4lb_conn_walk *walk)
	__acquires(RCU)
{
	rcu_read_lock();
	/* Connections collected before may be gone. */
	walk->n = 0;
	walk->next = 0;
	walk->filled = false;
	walk->visited = 0;
}

void l4lb_conn_walk_stop(struct l4lb_conn_walk *walk)
	__releases(RCU)
{
	rcu_read_unlock();
}

static bool is_shown(const struct l4lb_conn *conn)
{
	return l4lb_conn_alive(conn) && !l4lb_server_over(conn->server);
}

/* Keep the rows with the lowest hashes. */
static bool collect(struct l4lb_conn *conn, void *arg)
{
	struct l4lb_conn_walk *walk = arg;
	struct row *row = walk->rows;
	unsigned int i = walk->n;
	u64 hash;

	hash = l4lb_conn_table_hash_of(walk->table, conn);
	if (hash < walk->at || hash > walk->last || !is_shown(conn))
		return false;
	while (i && row[i - 1].hash > hash)
		i--;
	/* Visited twice, while it moves to another array. */
	if (i && row[i - 1].hash == hash)
		return false;
	if (walk->n == ROWS) {
		/* The rest comes with the next fill(). */
		if (i == ROWS) {
			walk->last = hash - 1;
			return false;
		}
		walk->last = row[--walk->n].hash - 1;
	}
	memmove(&row[i + 1], &row[i], (walk->n - i) * sizeof(*row));
	row[i] = (struct row){ .hash = hash, .conn = conn };
	walk->n++;
	return true;
}

static void fill(struct l4lb_conn_walk *walk)
{
	walk->n = 0;
	walk->next = 0;
	walk->filled = true;
	walk->last = l4lb_conn_table_range_end(walk->table, walk->at);
	l4lb_conn_table_visit(walk->table, walk->at, walk->last, collect, walk);
}

/* There may be many buckets with nothing to show, or nothing that the caller
 * wants.
 */
static void take_a_break(struct l4lb_conn_walk *walk)
{
	l4lb_conn_walk_stop(walk);
	cond_resched();
	l4lb_conn_walk_start(walk);
}

static void go_on_after(struct l4lb_conn_walk *walk, u64 hash)
{
	walk->at = hash + 1;
	walk->done = !walk->at;
}

struct l4lb_conn *l4lb_conn_walk_next(struct l4lb_conn_walk *walk)
{
	struct row *row;

	for (;;) {
		while (walk->next < walk->n) {
			row = &walk->rows[walk->next++];
			go_on_after(walk, row->hash);
			if (is_shown(row->conn))
				return row->conn;
		}
		if (walk->filled)
			go_on_after(walk, walk->last);
		if (walk->done)
			return NULL;
		if (++walk->visited > BUCKETS)
			take_a_break(walk);
		fill(walk);
	}
}

void l4lb_conn_walk_back(struct l4lb_conn_walk *walk)
{
	walk->at = walk->rows[--walk->next].hash;
	walk->done = false;
}

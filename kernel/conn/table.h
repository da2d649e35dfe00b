/* SPDX-License-Identifier: GPL-2.0 */
/* Between the files of the connection table; everybody else uses conn.h. */
#ifndef _L4LB_CONN_TABLE_H
#define _L4LB_CONN_TABLE_H

#include <linux/cache.h>
#include <linux/siphash.h>
#include <linux/workqueue.h>

#include "conn/conn.h"

/* What is found: a connection has a slot for the client's packets, with NAT one
 * more for the replies; a template has one of its own kind.
 */
enum l4lb_conn_kind {
	L4LB_CONN_IN,
	L4LB_CONN_OUT,
	L4LB_CONN_TEMPLATE_IN,
};

enum {
	L4LB_BUCKET_SLOTS	= 6,
	L4LB_STRIPE_BITS	= 8,	/* and fewest of an array's bits */
};

/**
 * struct l4lb_conn_bucket - connections of equal high bits of the hash
 * @tags: byte i: 8 other bits of the hash of what is in slot i; 0: it is free
 * @slot: address of the connection, and its kind in the lowest bits
 * @next: more of the same, when it is full
 *
 * A cache line.  A reader looks at @tags first and then at the slots that may
 * match; a writer, under the stripe's lock, does it the other way round.
 */
struct l4lb_conn_bucket {
	u64				tags;
	unsigned long			slot[L4LB_BUCKET_SLOTS];
	struct l4lb_conn_bucket __rcu	*next;
} __aligned(64);

/**
 * struct l4lb_conn_array - buckets
 * @buckets: by the highest bits of the hash
 * @shift: the others
 * @chained: there may be buckets that are full
 * @next: array to which everything moves, when this one has the wrong size;
 *	what is not here (any more) is there
 */
struct l4lb_conn_array {
	struct l4lb_conn_bucket		*buckets;
	u8				shift;
	bool				chained;
	struct l4lb_conn_array __rcu	*next;
};

/* Called for a connection whose time is over, before it is killed.  RCU. */
typedef void l4lb_conn_expired_fn(struct l4lb_conn *conn);

/**
 * struct l4lb_conn_table - the connections of a namespace
 * @key: of the hash
 * @array: where they are; the first of the two while it is resized
 * @resize_at: slots in use with which it is time to look at the size
 * @bits_min: it is never smaller
 * @ln: the namespace
 * @expired: called by the sweep for what it is about to kill: its time is over
 * @resize: moves everything to another array
 * @sweep: removes what has expired
 * @sweep_at: hash where the sweep goes on
 * @sweeping: it is queued or running
 * @n: connections and templates, and those about to be inserted
 * @n_out: slots of replies
 * @locks: by the highest bits of the hash, so that whatever the size is, a
 *	bucket has one
 */
struct l4lb_conn_table {
	siphash_key_t			key;
	struct l4lb_conn_array __rcu	*array;
	unsigned int			resize_at;
	unsigned int			bits_min;
	struct l4lb_net			*ln;
	l4lb_conn_expired_fn		*expired;
	struct delayed_work		resize;
	struct delayed_work		sweep;
	u64				sweep_at;
	atomic_t			sweeping;

	atomic_t			n ____cacheline_aligned_in_smp;
	atomic_t			n_out;
	spinlock_t			locks[1 << L4LB_STRIPE_BITS];
};

/* Configuration mutex held. */
int l4lb_conn_table_create(struct l4lb_net *ln, l4lb_conn_expired_fn *expired);
void l4lb_conn_table_destroy(struct l4lb_net *ln);
/* Kill the connections of removed real servers (expire_nodest_conn). */
void l4lb_conn_expire_nodest(struct l4lb_net *ln);
unsigned int l4lb_conn_table_size(struct l4lb_net *ln);	/* as ip_vs counts */

/* Room for one more?  If so it is taken.  RCU, BH off. */
bool l4lb_conn_table_admit(struct l4lb_conn_table *table,
			   const struct l4lb_flow *flow);
static inline void l4lb_conn_table_release(struct l4lb_conn_table *table)
{
	atomic_dec(&table->n);
}

void l4lb_conn_table_param(void);

/* Are its replies found by a slot of their own? */
static inline bool l4lb_conn_has_out(const struct l4lb_conn *conn)
{
	return conn->method == IP_VS_CONN_F_MASQ &&
	       !l4lb_conn_test(conn, L4LB_CONN_TEMPLATE);
}

/* Is its time over?  A template lives as long as connections hold it; the last
 * one sets its time before it lets go.
 */
static inline bool l4lb_conn_due(const struct l4lb_conn *conn)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE)) {
		if (atomic_read(&conn->n_holders))
			return false;
		smp_rmb();	/* n_holders before last */
	}
	return l4lb_conn_expired(conn);
}

static inline bool l4lb_conn_alive(const struct l4lb_conn *conn)
{
	return !l4lb_conn_test(conn, L4LB_CONN_DEAD) && !l4lb_conn_due(conn);
}

#endif /* _L4LB_CONN_TABLE_H */

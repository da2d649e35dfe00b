/* SPDX-License-Identifier: GPL-2.0 */
/* The connection table: for its own files, and for others to set it up. */
#ifndef _L4LB_CONN_TABLE_H
#define _L4LB_CONN_TABLE_H

#include <linux/cache.h>
#include <linux/siphash.h>
#include <linux/workqueue.h>

#include "conn/array.h"
#include "conn/conn.h"
#include "conn/watch.h"

struct l4lb_conn_missed;

/* Of SipHash. */
struct l4lb_hash_state {
	u64	v0, v1, v2, v3;
};

/**
 * struct l4lb_conn_table - the connections of a namespace
 * @start: what each hash of a header begins with
 * @array: the buckets; during a resize, the old array
 * @missed: hashes of packets that the stack looks up again, see missed.h
 * @key: of the hash
 * @resize_at: with more slots in use, an insertion checks the size
 * @bits_min: the array never has fewer bits
 * @ln: the namespace
 * @events: what higher layers are told
 * @resize: moves all entries to another array
 * @sweep: removes expired connections
 * @over: removes the connections of real servers whose connections are over
 * @pressed: bits: an alarm's limit was reached, see alarm.h
 * @calm: by alarm, looks since then
 * @sweep_at: hash where the sweep goes on
 * @sweeping: the sweep is queued or running
 * @n: connections and templates, and those about to be inserted
 * @n_out: slots of replies
 * @n_templates: templates among @n
 * @granted: places that it has taken of those for all namespaces, see share.c
 * @n_half_open: connections with %L4LB_CONN_HALF_OPEN
 * @locks: by the highest bits of the hash, so that a bucket of any array has
 *	one
 */
struct l4lb_conn_table {
	struct l4lb_hash_state		start;
	struct l4lb_conn_array __rcu	*array;
	struct l4lb_conn_missed __percpu *missed;
	siphash_key_t			key;
	unsigned int			resize_at;
	unsigned int			bits_min;
	struct l4lb_net			*ln;
	const struct l4lb_conn_events	*events;
	struct delayed_work		resize;
	struct delayed_work		sweep;
	struct delayed_work		over;
	unsigned long			pressed;
	u8				calm[L4LB_ALARMS];
	u64				sweep_at;
	atomic_t			sweeping;

	atomic_t			n ____cacheline_aligned_in_smp;
	atomic_t			n_out;
	atomic_t			n_templates;
	atomic_t			n_half_open;
	atomic_t			granted;
	struct l4lb_conn_lock		locks[1 << L4LB_STRIPE_BITS];
};

/* Configuration mutex held. */
int l4lb_conn_table_create(struct l4lb_net *ln,
			   const struct l4lb_conn_events *events);
void l4lb_conn_table_stop(struct l4lb_net *ln);
void l4lb_conn_table_destroy(struct l4lb_net *ln);
/* Have the connections of real servers removed whose connections are over. */
void l4lb_conn_remove_over(struct l4lb_net *ln);
unsigned int l4lb_conn_table_size(struct l4lb_net *ln);	/* as for ip_vs */

/* No connection counts as announced any more.  May sleep. */
void l4lb_conn_tell_again(struct l4lb_net *ln);

/* As l4lb_conn_table_admit(), near a limit; @n includes the new one.  RCU, BH off. */
bool l4lb_conn_table_admit_near(struct l4lb_conn_table *table,
				const struct l4lb_flow *flow, bool template, int n);
/* The same for a connection that another director has: nothing is given up. */
bool l4lb_conn_table_admit_copy(struct l4lb_conn_table *table, bool template);
/* Makes room among the connections whose replies have the same header as those
 * of @conn; false: all of them are proven.  RCU, BH off.
 */
bool l4lb_conn_table_evict_equal(struct l4lb_conn_table *table,
				 const struct l4lb_conn *conn);

/* Kills @conn to make room for another one, and counts it.  RCU, BH off. */
void l4lb_conn_table_give_up(struct l4lb_conn_table *table, struct l4lb_conn *conn);

void l4lb_conn_table_param(void);

static inline bool l4lb_conn_begins_half_open(u8 proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_SCTP;
}

static inline void l4lb_conn_not_half_open(struct l4lb_conn *conn,
					   struct l4lb_conn_table *table)
{
	if (l4lb_conn_test(conn, L4LB_CONN_HALF_OPEN) &&
	    l4lb_conn_test_and_clear(conn, L4LB_CONN_HALF_OPEN))
		atomic_dec(&table->n_half_open);
}

/* Are its replies found by a slot of their own? */
static inline bool l4lb_conn_has_out(const struct l4lb_conn *conn)
{
	return conn->method == IP_VS_CONN_F_MASQ &&
	       !l4lb_conn_test(conn, L4LB_CONN_TEMPLATE);
}

/* Is its time over?  A template lives as long as connections hold it; the last
 * holder sets the template's time before it lets go.
 */
static inline bool l4lb_conn_due(const struct l4lb_conn *conn)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE)) {
		if (atomic_read(&conn->n_holders))
			return false;
		smp_rmb();	/* read n_holders before last */
	}
	return l4lb_conn_expired(conn);
}

/* Will it soon be removed?  Not for each packet, which see l4lb_conn_alive(). */
static inline bool l4lb_conn_useless(const struct l4lb_conn *conn)
{
	return l4lb_conn_due(conn) || l4lb_server_over(conn->server);
}

static inline bool l4lb_conn_alive(const struct l4lb_conn *conn)
{
	return !l4lb_conn_test(conn, L4LB_CONN_DEAD) && !l4lb_conn_due(conn);
}

#endif /* _L4LB_CONN_TABLE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection's way into the table, inline.  In the usual case there is no resize, its
 * bucket has a free slot, and nothing in the bucket has the same tag; bucket.c does the
 * rest.  RCU, BH off.
 */
#ifndef _L4LB_CONN_INSERT_H
#define _L4LB_CONN_INSERT_H

#include "conn/bucket.h"
#include "conn/resize.h"
#include "conn/slot.h"
#include "conn/slot_hash.h"
#include "conn/sweep.h"

static inline spinlock_t *stripe_lock(struct l4lb_conn_table *table, u64 hash)
{
	return &table->locks[hash >> (64 - L4LB_STRIPE_BITS)].lock;
}

/* @flow's hash, of which l4lb_conn_find_both(), find_here() or find_call() may have
 * stored one; 0: they have not.
 */
static __always_inline u64 hash_stored(const struct l4lb_conn_table *table,
				       const struct l4lb_flow *flow, bool template)
{
	if (IS_ENABLED(CONFIG_PROVE_LOCKING) && flow->hash)
		WARN_ON_ONCE(!template && flow->hash != hash_anew(table, flow, false));
	return flow->hash;
}

static __always_inline bool put_at_once(struct l4lb_conn_array *array, u64 hash,
					unsigned long slot)
{
	struct l4lb_conn_bucket *home = home_of(array, hash);
	u64 tags = home->tags, free = tags_equal(tags, 0);
	unsigned int i;

	if (unlikely(!free || tags_equal(tags, tag_of(hash)) ||
		     rcu_access_pointer(array->next) || rcu_access_pointer(home->next)))
		return false;
	i = first_slot(free);
	/* Readers that see the slot see what it points to. */
	smp_store_release(&home->slot[i], slot);
	/* Readers that see the tag see the slot.  The tag was 0. */
	smp_store_release(&home->tags, tags | tag_of(hash) << i * TAG_BITS);
	return true;
}

/* Inserts @conn as @kind, in the usual case. */
static __always_inline bool insert_at_once(struct l4lb_conn_table *table,
					   struct l4lb_conn *conn,
					   enum l4lb_conn_kind kind, u64 hash)
{
	spinlock_t *lock = stripe_lock(table, hash);
	bool done;

	lockdep_assert_in_softirq();
	spin_lock(lock);
	done = likely(!l4lb_conn_test(conn, L4LB_CONN_DEAD)) &&
	       put_at_once(rcu_dereference(table->array), hash, slot_of(conn, kind));
	spin_unlock(lock);
	return done;
}

/* Call it after an insertion. */
static __always_inline void l4lb_conn_inserted(struct l4lb_conn_table *table)
{
	unsigned int slots = atomic_read(&table->n) + atomic_read(&table->n_out);

	if (unlikely(slots > READ_ONCE(table->resize_at)))
		l4lb_conn_resize_check(table);
	l4lb_conn_sweep_kick(table);
}

/* l4lb_conn_table_insert() of a connection, not of a template: mostly without a call, if
 * its packets need one slot.
 */
static __always_inline struct l4lb_conn *
l4lb_conn_insert_here(struct l4lb_conn_table *table, struct l4lb_conn *conn,
		      const struct l4lb_flow *flow)
{
	const u64 hash = hash_stored(table, flow, false);

	if (unlikely(!hash) || l4lb_conn_is_nat(conn) ||
	    unlikely(!insert_at_once(table, conn, L4LB_CONN_IN, hash)))
		return l4lb_conn_table_insert(table, conn, flow);
	l4lb_conn_inserted(table);
	return NULL;
}

#endif /* _L4LB_CONN_INSERT_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * Buckets of the connection table: where an entry goes, and how it moves.
 *
 *	hash	63 .. 56 .. shift		.. 7 .. 0
 *		stripe				   tag
 *		bucket ----------
 *
 * The highest bits select the bucket, so arrays of any size keep connections in
 * the same order, that of the hash, and a walk can go on after a resize.  The
 * hash is keyed: a remote client cannot choose the bucket.  Its length is bounded
 * by L4LB_EQUAL_REPLIES for each header.
 *
 * Readers take no lock.  An entry that moves is first written to its new place,
 * then removed from the old one.  Readers look at the old place first, so they
 * see it once or twice, but never miss it.
 */
#include "conn/bucket.h"

#include <linux/prefetch.h>
#include <linux/slab.h>

#include "conn/defence.h"
#include "conn/insert.h"
#include "conn/lookup.h"

static struct kmem_cache *bucket_cache;

u64 l4lb_conn_table_hash(const struct l4lb_conn_table *table,
			 const struct l4lb_flow *flow, bool template)
{
	return hash_stored(table, flow, template) ?: hash_anew(table, flow, template);
}

/* ---- slots ---- */

/* Have both templates the same Call-ID? */
static bool same_call(const struct l4lb_conn *a, const struct l4lb_conn *b)
{
	const struct l4lb_call *one = l4lb_conn_call(a), *other = l4lb_conn_call(b);

	return one->len == other->len && !memcmp(one->id, other->id, one->len);
}

static enum l4lb_conn_kind in_kind(const struct l4lb_conn *conn)
{
	if (!l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return L4LB_CONN_IN;
	return l4lb_conn_call(conn) ? L4LB_CONN_CALL_IN : L4LB_CONN_TEMPLATE_IN;
}

/* The hash of the slot that the client's packets find. */
u64 l4lb_conn_table_hash_of(const struct l4lb_conn_table *table,
			    const struct l4lb_conn *conn)
{
	return hash_any(table, conn, in_kind(conn));
}

/* ---- walks ---- */

u64 l4lb_conn_table_range_end(const struct l4lb_conn_table *table, u64 first)
{
	const struct l4lb_conn_array *array;
	unsigned int shift = 0;

	for (array = rcu_dereference(table->array); array;
	     array = rcu_dereference(array->next))
		shift = max_t(unsigned int, shift, array->shift);
	return first | GENMASK_ULL(shift - 1, 0);
}

/* Connections are scattered over memory: prefetch those of a bucket, so that a
 * walk waits for them once.
 */
static void bucket_prefetch(const struct l4lb_conn_bucket *bucket)
{
	unsigned int i;

	for (i = 0; i < L4LB_BUCKET_SLOTS; i++)
		prefetch(slot_conn(READ_ONCE(bucket->slot[i])));
}

static unsigned int bucket_visit(const struct l4lb_conn_bucket *bucket,
				 l4lb_conn_visit_fn *fn, void *arg)
{
	unsigned int hits = 0;
	unsigned long slot;
	u64 used;

	for (; bucket; bucket = rcu_dereference(bucket->next)) {
		bucket_prefetch(bucket);
		/* As in l4lb_look_up(). */
		used = ~tags_equal(smp_load_acquire(&bucket->tags), 0) &
		       TAG_HIGHS;
		for (; used; used &= used - 1) {
			/* Likewise. */
			slot = smp_load_acquire(&bucket->slot[first_slot(used)]);
			if (slot_conn(slot) && slot_kind(slot) != L4LB_CONN_OUT &&
			    slot_kind(slot) != L4LB_CONN_LOCAL)
				hits += fn(slot_conn(slot), arg);
		}
	}
	return hits;
}

unsigned int l4lb_conn_table_visit(const struct l4lb_conn_table *table,
				   u64 first, u64 last, l4lb_conn_visit_fn *fn,
				   void *arg)
{
	const struct l4lb_conn_array *array;
	unsigned int hits = 0;
	u64 i;

	for (array = rcu_dereference(table->array); array;
	     array = rcu_dereference(array->next))
		for (i = first >> array->shift; i <= last >> array->shift; i++)
			hits += bucket_visit(&array->buckets[i], fn, arg);
	return hits;
}

/* ---- writers: the stripe's lock ---- */

/* The array that new entries go into. */
static struct l4lb_conn_array *last_array(struct l4lb_conn_array *array,
					  const spinlock_t *lock)
{
	struct l4lb_conn_array *next;

	while ((next = rcu_dereference_protected(array->next,
						 lockdep_is_held(lock))))
		array = next;
	return array;
}

static struct l4lb_conn_bucket *bucket_next(const struct l4lb_conn_bucket *bucket,
					    const spinlock_t *lock)
{
	return rcu_dereference_protected(bucket->next, lockdep_is_held(lock));
}

static void tag_set(struct l4lb_conn_bucket *bucket, unsigned int i, u64 tag)
{
	unsigned int bit = i * TAG_BITS;
	u64 tags = bucket->tags & ~(GENMASK_ULL(TAG_BITS - 1, 0) << bit);

	/* Readers that see the new tag see all earlier writes. */
	smp_store_release(&bucket->tags, tags | tag << bit);
}

static void slot_set(struct l4lb_conn_bucket *bucket, unsigned int i,
		     unsigned long slot, u64 tag)
{
	/* Readers that see the slot see what it points to. */
	smp_store_release(&bucket->slot[i], slot);
	tag_set(bucket, i, tag);
}

static void slot_clear(struct l4lb_conn_bucket *bucket, unsigned int i)
{
	tag_set(bucket, i, 0);
	/* A reader that sees the slot empty sees the entry's new place. */
	smp_store_release(&bucket->slot[i], 0);
}

struct place {
	struct l4lb_conn_bucket	*bucket;
	unsigned int		i;
};

/* Appends a bucket to @last; NULL without memory. */
static struct l4lb_conn_bucket *chain(struct l4lb_conn_array *array,
				      struct l4lb_conn_bucket *last)
{
	struct l4lb_conn_bucket *next;

	next = kmem_cache_zalloc(bucket_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!next)
		return NULL;
	WRITE_ONCE(array->chained, true);
	rcu_assign_pointer(last->next, next);
	return next;
}

/* The first free slot from @bucket on, in an additional bucket if need be.
 * Without memory its bucket is NULL.
 */
static struct place first_free(struct l4lb_conn_array *array,
			       struct l4lb_conn_bucket *bucket,
			       const spinlock_t *lock)
{
	u64 free;

	while (!(free = tags_equal(bucket->tags, 0))) {
		bucket = bucket_next(bucket, lock) ?: chain(array, bucket);
		if (!bucket)
			return (struct place){ };
	}
	return (struct place){ bucket, first_slot(free) };
}

/**
 * struct equals - the slots of a chain whose replies have the same header
 * @at: where they are, in the order of the chain: the newest first
 * @n: their number
 * @n_before: how many of them come before the first free slot
 */
struct equals {
	struct place	at[L4LB_EQUAL_REPLIES];
	unsigned int	n;
	unsigned int	n_before;
};

/* In one pass over the chain from @bucket on; a dead connection's slot is its
 * killer's to clear.  Stops at %L4LB_EQUAL_REPLIES.
 */
static void find_equals(struct equals *equals, struct l4lb_conn_bucket *bucket,
			const struct l4lb_conn *conn, const spinlock_t *lock)
{
	bool hole = false;
	unsigned int i;

	equals->n = 0;
	equals->n_before = 0;
	for (; bucket; bucket = bucket_next(bucket, lock)) {
		for (i = 0; i < L4LB_BUCKET_SLOTS; i++) {
			unsigned long slot = bucket->slot[i];
			const struct l4lb_conn *other = slot_conn(slot);

			hole |= !slot;
			if (!slot || slot_kind(slot) != L4LB_CONN_OUT ||
			    !same_replies(other, conn) ||
			    l4lb_conn_test(other, L4LB_CONN_DEAD))
				continue;
			equals->at[equals->n++] = (struct place){ bucket, i };
			equals->n_before += !hole;
			if (equals->n == L4LB_EQUAL_REPLIES)
				return;
		}
	}
}

/*
 * Put @slot into the chain of @home, in which there may be equals.  Replies to
 * several connections may have the same header (one client socket that reaches
 * a real server through two VIPs).  As with ip_vs the newest gets them: it takes
 * the place of the first one, which takes that of the next, and so on.  The last
 * one moves first, so that each is always in at least one place.
 *
 * Apart from bucket_put(), which seldom needs so much stack.
 */
static noinline int put_reply(struct l4lb_conn_array *array,
			      struct l4lb_conn_bucket *home, unsigned long slot,
			      u64 tag, const spinlock_t *lock)
{
	struct equals equals;
	struct place hole;
	unsigned int i;

	find_equals(&equals, home, slot_conn(slot), lock);
	if (equals.n == L4LB_EQUAL_REPLIES)
		return -EMLINK;
	hole = first_free(array, home, lock);
	if (!hole.bucket)
		return -ENOMEM;
	for (i = equals.n_before; i--;) {
		const struct place *from = &equals.at[i];

		slot_set(hole.bucket, hole.i, from->bucket->slot[from->i], tag);
		hole = *from;
	}
	slot_set(hole.bucket, hole.i, slot, tag);
	return 0;
}

static bool has_tag(const struct l4lb_conn_bucket *bucket, u64 tag,
		    const spinlock_t *lock)
{
	for (; bucket; bucket = bucket_next(bucket, lock))
		if (tags_equal(bucket->tags, tag))
			return true;
	return false;
}

/*
 * Put @slot into its chain.
 *
 * Return: 0; -ENOMEM; or -EMLINK, so many connections have replies with the same
 * header that one more would make packets wait.
 */
static int bucket_put(struct l4lb_conn_array *array, u64 hash,
		      unsigned long slot, const spinlock_t *lock)
{
	struct l4lb_conn_bucket *home = home_of(array, hash);
	struct place hole;

	if (slot_kind(slot) == L4LB_CONN_OUT &&
	    unlikely(has_tag(home, tag_of(hash), lock)))
		return put_reply(array, home, slot, tag_of(hash), lock);
	hole = first_free(array, home, lock);
	if (!hole.bucket)
		return -ENOMEM;
	slot_set(hole.bucket, hole.i, slot, tag_of(hash));
	return 0;
}

static bool slot_move(struct l4lb_conn_table *table, struct l4lb_conn_array *to,
		      struct l4lb_conn_bucket *bucket, unsigned int i,
		      const spinlock_t *lock)
{
	unsigned long slot = bucket->slot[i];
	u64 hash;

	if (!slot)
		return true;
	hash = hash_any(table, slot_conn(slot), slot_kind(slot));
	if (bucket_put(to, hash, slot, lock))
		return false;
	slot_clear(bucket, i);
	return true;
}

/**
 * l4lb_conn_bucket_move() - move a bucket's entries to the new array
 * @table: table
 * @from: the old array
 * @index: of the bucket
 *
 * The last ones move first: of equal replies the newest is always found.
 *
 * Context: the stripe's lock.
 * Return: false without memory; the entries that stay are still found.
 */
bool l4lb_conn_bucket_move(struct l4lb_conn_table *table,
			   struct l4lb_conn_array *from, u64 index)
{
	const spinlock_t *lock = stripe_lock(table, index << from->shift);
	struct l4lb_conn_bucket *bucket, *last = NULL;
	struct l4lb_conn_array *to = last_array(from, lock);
	unsigned int i;

	lockdep_assert_held(lock);
	do {
		bucket = &from->buckets[index];
		while (bucket_next(bucket, lock) != last)
			bucket = bucket_next(bucket, lock);
		bucket_prefetch(bucket);
		for (i = L4LB_BUCKET_SLOTS; i--;)
			if (!slot_move(table, to, bucket, i, lock))
				return false;
		last = bucket;
	} while (bucket != &from->buckets[index]);
	return true;
}

spinlock_t *l4lb_conn_bucket_lock(struct l4lb_conn_table *table,
				  const struct l4lb_conn_array *array, u64 i)
{
	return stripe_lock(table, i << array->shift);
}

/* Does a packet with the header of @key find @slot, so that @new has no place beside it?
 * A local end leaves no header to any other slot.
 */
static bool is_rival(unsigned long slot, const struct l4lb_flow *key, unsigned long new)
{
	const struct l4lb_conn *conn = slot_conn(slot);
	enum l4lb_conn_kind kind = slot_kind(slot);

	if (slot_kind(new) != L4LB_CONN_LOCAL)
		return kind == slot_kind(new) && same_key(conn, key, key->af, kind) &&
		       (kind != L4LB_CONN_CALL_IN || same_call(conn, slot_conn(new)));
	if (kind == L4LB_CONN_LOCAL)
		return same_local(conn, key, key->af);
	return kind <= L4LB_CONN_OUT && same_key(conn, key, key->af, kind);
}

/* The connection with the key of the slot @new, which is that of @key, and need not be
 * alive; or NULL.  Clears the slots of dead ones, which are about to be removed anyway,
 * but not if they are counted.
 */
static struct l4lb_conn *present(struct l4lb_conn_array *array,
				 const struct l4lb_flow *key, u64 hash,
				 unsigned long new, const spinlock_t *lock)
{
	struct l4lb_conn_bucket *bucket;
	struct l4lb_conn *conn;
	unsigned int i;
	u64 equal;

	for (; array; array = rcu_dereference_protected(array->next,
							lockdep_is_held(lock)))
		for (bucket = home_of(array, hash); bucket;
		     bucket = bucket_next(bucket, lock)) {
			equal = tags_equal(bucket->tags, tag_of(hash));
			for (; equal; equal &= equal - 1) {
				i = first_slot(equal);
				if (!is_rival(bucket->slot[i], key, new))
					continue;
				conn = slot_conn(bucket->slot[i]);
				if (!l4lb_conn_test(conn, L4LB_CONN_DEAD) ||
				    slot_kind(new) == L4LB_CONN_LOCAL)
					return conn;
				slot_clear(bucket, i);
			}
		}
	return NULL;
}

/* In any other case.  Return: as l4lb_conn_table_insert(). */
static noinline struct l4lb_conn *insert_beside(struct l4lb_conn_table *table,
						struct l4lb_conn *conn,
						enum l4lb_conn_kind kind, u64 hash,
						const struct l4lb_flow *key)
{
	struct l4lb_conn_array *array, *to;
	spinlock_t *lock = stripe_lock(table, hash);
	struct l4lb_conn *old = NULL;

	spin_lock(lock);
	array = rcu_dereference(table->array);
	to = last_array(array, lock);
	/* Fail if an older equal reply, left behind, would be found first. */
	if (to != array &&
	    !l4lb_conn_bucket_move(table, array, hash >> array->shift) &&
	    kind == L4LB_CONN_OUT)
		old = ERR_PTR(-ENOMEM);
	if (kind != L4LB_CONN_OUT)
		old = present(array, key, hash, slot_of(conn, kind), lock);
	/* A reply has found the other slot, and killed @conn. */
	if (unlikely(l4lb_conn_test(conn, L4LB_CONN_DEAD)))
		old = ERR_PTR(-ENOENT);
	if (!old)
		old = ERR_PTR(bucket_put(to, hash, slot_of(conn, kind), lock));
	spin_unlock(lock);
	return old;
}

static __always_inline struct l4lb_conn *
insert_as(struct l4lb_conn_table *table, struct l4lb_conn *conn,
	  enum l4lb_conn_kind kind, u64 hash, const struct l4lb_flow *key)
{
	return likely(insert_at_once(table, conn, kind, hash)) ? NULL :
	       insert_beside(table, conn, kind, hash, key);
}

/**
 * l4lb_conn_equal_victim() - a connection to give up for one with equal replies
 * @table: table; l4lb_conn_table_insert() of @conn has returned -EMLINK
 * @conn: the new connection
 *
 * Context: RCU, BH off.
 * Return: of the connections whose replies have the same header, the best
 * victim; NULL if none may be evicted.
 */
struct l4lb_conn *l4lb_conn_equal_victim(struct l4lb_conn_table *table,
					 const struct l4lb_conn *conn)
{
	u64 hash = hash_slot(table, conn, L4LB_CONN_OUT);
	spinlock_t *lock = stripe_lock(table, hash);
	struct l4lb_conn_array *array;
	struct l4lb_victim victim;
	struct equals equals;
	unsigned int i;

	l4lb_victim_init(&victim);
	spin_lock(lock);
	array = last_array(rcu_dereference(table->array), lock);
	find_equals(&equals, home_of(array, hash), conn, lock);
	for (i = 0; i < equals.n; i++)
		l4lb_victim_offer(&victim, slot_conn(equals.at[i].bucket->slot[equals.at[i].i]));
	spin_unlock(lock);
	return victim.conn;
}

/* Return: true, it was there. */
static bool remove_as(struct l4lb_conn_table *table, struct l4lb_conn *conn,
		      enum l4lb_conn_kind kind)
{
	u64 hash = hash_any(table, conn, kind);
	spinlock_t *lock = stripe_lock(table, hash);
	struct l4lb_conn_bucket *bucket;
	struct l4lb_conn_array *array;
	bool removed = false;
	u64 equal;

	spin_lock_bh(lock);
	for (array = rcu_dereference(table->array); array;
	     array = rcu_dereference(array->next))
		for (bucket = home_of(array, hash); bucket;
		     bucket = bucket_next(bucket, lock)) {
			equal = tags_equal(bucket->tags, tag_of(hash));
			for (; equal; equal &= equal - 1)
				if (bucket->slot[first_slot(equal)] ==
				    slot_of(conn, kind)) {
					slot_clear(bucket, first_slot(equal));
					removed = true;
				}
		}
	spin_unlock_bh(lock);
	return removed;
}

/* An insertion that fails may race with a kill: one of them finds the slot. */
static void remove_replies(struct l4lb_conn_table *table, struct l4lb_conn *conn,
			   enum l4lb_conn_kind kind)
{
	if (remove_as(table, conn, kind))
		atomic_dec(&table->n_out);
}

/* Inserts the slot of @conn's local end.  Return: NULL, the connection that has its
 * packets, or an ERR_PTR() as of l4lb_conn_table_insert(), which calls it.
 */
struct l4lb_conn *l4lb_conn_table_insert_local(struct l4lb_conn_table *table,
					       struct l4lb_conn *conn)
{
	const struct l4lb_flow key = l4lb_conn_local_flow(conn);
	struct l4lb_conn *old;

	atomic_inc(&table->n_out);
	old = insert_as(table, conn, L4LB_CONN_LOCAL, hash_anew(table, &key, false), &key);
	if (old)
		atomic_dec(&table->n_out);
	return old;
}

/* After all slots but the client's. */
static __always_inline struct l4lb_conn *
insert_last(struct l4lb_conn_table *table, struct l4lb_conn *conn,
	    const struct l4lb_flow *flow)
{
	enum l4lb_conn_kind kind = in_kind(conn);
	u64 hash = l4lb_conn_table_hash(table, flow, kind != L4LB_CONN_IN);
	struct l4lb_conn *old = insert_as(table, conn, kind, hash, flow);

	if (likely(!old))
		l4lb_conn_inserted(table);
	else if (l4lb_conn_has_out(conn))
		remove_replies(table, conn, L4LB_CONN_OUT);
	else if (conn->method == L4LB_FULL_NAT)
		remove_replies(table, conn, L4LB_CONN_LOCAL);
	return old;
}

/**
 * l4lb_conn_table_insert() - insert a connection into the table
 * @table: table; l4lb_conn_table_admit() has returned true
 * @conn: connection or template
 * @flow: the flow it is found by, client to VIP
 *
 * Context: RCU, BH off.
 * Return: NULL if it is in the table now, the connection that has its key
 * already, or an ERR_PTR(): -ENOMEM; -EMLINK, replies to %L4LB_EQUAL_REPLIES
 * other connections have the same header; -EADDRINUSE, no local end of full NAT is
 * free; -ENOENT, @conn is dead.
 */
struct l4lb_conn *l4lb_conn_table_insert(struct l4lb_conn_table *table,
					 struct l4lb_conn *conn,
					 const struct l4lb_flow *flow)
{
	struct l4lb_conn *old = NULL;

	if (l4lb_conn_has_out(conn)) {
		/* Counted before a reply can find it and kill @conn. */
		atomic_inc(&table->n_out);
		old = insert_as(table, conn, L4LB_CONN_OUT,
				hash_slot(table, conn, L4LB_CONN_OUT), NULL);
		if (unlikely(old))
			atomic_dec(&table->n_out);
	} else if (conn->method == L4LB_FULL_NAT) {
		old = l4lb_conn_local_insert(table, conn,
					     l4lb_conn_table_hash(table, flow, false));
	}
	return unlikely(old) ? old : insert_last(table, conn, flow);
}

/* Call it once for each connection in the table.  RCU. */
void l4lb_conn_table_remove(struct l4lb_conn_table *table,
			    struct l4lb_conn *conn)
{
	remove_as(table, conn, in_kind(conn));
	if (l4lb_conn_has_out(conn))
		remove_replies(table, conn, L4LB_CONN_OUT);
	else if (conn->method == L4LB_FULL_NAT)
		remove_replies(table, conn, L4LB_CONN_LOCAL);
}

/* The chain is empty, and no reader is left. */
void l4lb_conn_bucket_free_chain(struct l4lb_conn_bucket *bucket)
{
	struct l4lb_conn_bucket *next, *more;

	for (more = rcu_dereference_raw(bucket->next); more; more = next) {
		next = rcu_dereference_raw(more->next);
		kmem_cache_free(bucket_cache, more);
	}
}

int __init l4lb_conn_bucket_init(void)
{
	BUILD_BUG_ON(sizeof(struct l4lb_conn_bucket) != 64);
	bucket_cache = kmem_cache_create("l4lb_conn_bucket",
					 sizeof(struct l4lb_conn_bucket), 0,
					 SLAB_HWCACHE_ALIGN, NULL);
	return bucket_cache ? 0 : -ENOMEM;
}

void l4lb_conn_bucket_exit(void)
{
	kmem_cache_destroy(bucket_cache);
}

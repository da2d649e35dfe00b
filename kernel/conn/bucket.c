// SPDX-License-Identifier: GPL-2.0
/*
 * Buckets of the connection table: a packet finds its connection here, in most
 * cases by reading two cache lines, the bucket's and the connection's.
 *
 *	hash	63 .. 56 .. shift		.. 7 .. 0
 *		stripe				   tag
 *		bucket ----------
 *
 * The highest bits select the bucket, so arrays of any size keep connections in
 * the same order, that of the hash, and a walk can go on after a resize.  The
 * hash is keyed, so that no remote client can fill a bucket.
 *
 * Readers take no lock.  An entry that moves is first written to its new place,
 * then removed from the old one.  Readers look at the old place first, so they
 * see it once or twice, but never miss it.
 */
#include "conn/bucket.h"

#include <linux/bitops.h>
#include <linux/prefetch.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "conn/hash.h"
#include "conn/resize.h"
#include "conn/sweep.h"

#define TAG_BITS	8
#define SLOT_TAGS	GENMASK_ULL(L4LB_BUCKET_SLOTS * TAG_BITS - 1, 0)
#define TAG_ONES	(0x0101010101010101ULL & SLOT_TAGS)
#define TAG_HIGHS	(TAG_ONES << (TAG_BITS - 1))
#define KIND_MASK	3UL

static struct kmem_cache *bucket_cache;

/* ---- hash ---- */

static u64 hash_anew(const struct l4lb_conn_table *table,
		     const struct l4lb_flow *flow, bool template)
{
	return flow->af == AF_INET ?
	       hash_flow(&table->key, flow, AF_INET, template) :
	       hash_flow(&table->key, flow, AF_INET6, template);
}

u64 l4lb_conn_table_hash(const struct l4lb_conn_table *table,
			 const struct l4lb_flow *flow, bool template)
{
	/* The hash that l4lb_conn_find_both() stored is still right. */
	if (IS_ENABLED(CONFIG_PROVE_LOCKING) && flow->hash)
		WARN_ON_ONCE(template ||
			     flow->hash != hash_anew(table, flow, false));
	return flow->hash ?: hash_anew(table, flow, template);
}

/* The hash of packets that find @conn by its slot of @kind: the real server's
 * replies or the client's packets.  An address is given by its first word.
 */
static u64 hash_slot(const struct l4lb_conn_table *table,
		     const struct l4lb_conn *conn, enum l4lb_conn_kind kind)
{
	bool out = kind == L4LB_CONN_OUT;
	struct hash_input in = {
		.sport = out ? conn->dport : conn->cport,
		.dport = out ? conn->cport : conn->vport,
		.proto = conn->proto,
		.template = kind == L4LB_CONN_TEMPLATE_IN,
	};

	if (conn->af == AF_INET) {
		in.from = out ? &conn->v4.daddr : &conn->v4.caddr;
		in.to = out ? &conn->v4.caddr : &conn->v4.vaddr;
		return hash_header(&table->key, AF_INET, &in);
	}
	in.from = (out ? &conn->v6.daddr : &conn->v6.caddr)->s6_addr32;
	in.to = (out ? &conn->v6.caddr : &conn->v6.vaddr)->s6_addr32;
	return hash_header(&table->key, AF_INET6, &in);
}

/* ---- slots ---- */

static __always_inline u64 tag_of(u64 hash)
{
	return (hash & GENMASK(TAG_BITS - 1, 0)) ?: 1;
}

/* The highest bit of each byte that equals @tag; with 0, of each free slot. */
static __always_inline u64 tags_equal(u64 tags, u64 tag)
{
	const u64 rest = TAG_HIGHS - TAG_ONES;	/* 0x7f in each */
	u64 x = (tags ^ tag * TAG_ONES) & SLOT_TAGS;

	return ~(((x & rest) + rest) | x) & TAG_HIGHS;
}

static __always_inline unsigned int first_slot(u64 equal)
{
	return __ffs64(equal) / TAG_BITS;
}

static unsigned long slot_of(const struct l4lb_conn *conn,
			     enum l4lb_conn_kind kind)
{
	return (unsigned long)conn | kind;
}

static __always_inline struct l4lb_conn *slot_conn(unsigned long slot)
{
	return (struct l4lb_conn *)(slot & ~KIND_MASK);
}

static __always_inline enum l4lb_conn_kind slot_kind(unsigned long slot)
{
	return slot & KIND_MASK;
}

static spinlock_t *stripe_lock(struct l4lb_conn_table *table, u64 hash)
{
	return &table->locks[hash >> (64 - L4LB_STRIPE_BITS)];
}

static __always_inline struct l4lb_conn_bucket *
home_of(const struct l4lb_conn_array *array, u64 hash)
{
	return &array->buckets[hash >> array->shift];
}

/* Is a slot of @kind for a packet with the header of @flow? */
static __always_inline bool same_key(const struct l4lb_conn *conn,
				     const struct l4lb_flow *flow, u8 af,
				     enum l4lb_conn_kind kind)
{
	if (conn->af != af || conn->proto != flow->proto)
		return false;
	if (kind == L4LB_CONN_OUT) {
		if (conn->dport != flow->sport || conn->cport != flow->dport)
			return false;
		if (af == AF_INET)
			return conn->v4.daddr == flow->saddr.ip &&
			       conn->v4.caddr == flow->daddr.ip;
		return ipv6_addr_equal(&conn->v6.daddr, &flow->saddr.in6) &&
		       ipv6_addr_equal(&conn->v6.caddr, &flow->daddr.in6);
	}
	if (conn->cport != flow->sport || conn->vport != flow->dport)
		return false;
	if (af == AF_INET)
		return conn->v4.caddr == flow->saddr.ip &&
		       conn->v4.vaddr == flow->daddr.ip;
	return ipv6_addr_equal(&conn->v6.caddr, &flow->saddr.in6) &&
	       ipv6_addr_equal(&conn->v6.vaddr, &flow->daddr.in6);
}

/* Do the replies of both have the same header? */
static bool same_replies(const struct l4lb_conn *a, const struct l4lb_conn *b)
{
	if (a->af != b->af || a->proto != b->proto || a->dport != b->dport ||
	    a->cport != b->cport)
		return false;
	if (a->af == AF_INET)
		return a->v4.daddr == b->v4.daddr && a->v4.caddr == b->v4.caddr;
	return ipv6_addr_equal(&a->v6.daddr, &b->v6.daddr) &&
	       ipv6_addr_equal(&a->v6.caddr, &b->v6.caddr);
}

static enum l4lb_conn_kind in_kind(const struct l4lb_conn *conn)
{
	return l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ?
	       L4LB_CONN_TEMPLATE_IN : L4LB_CONN_IN;
}

/* ---- readers ---- */

struct wanted {
	const struct l4lb_flow	*flow;
	u64			hash;
	unsigned int		kinds;	/* bits */
	u8			af;	/* of the flow, as a constant */
};

/*
 * The first live connection with a slot of one of these kinds for this flow.
 * If replies are wanted, they take precedence: in the namespace of a real
 * server that is also a client, a header may be both a reply and a request.
 */
static __always_inline struct l4lb_conn *
look_up(const struct l4lb_conn_table *table, const struct wanted *w,
	bool *reply)
{
	const struct l4lb_conn_array *array = rcu_dereference(table->array);
	struct l4lb_conn *conn, *request = NULL;
	const struct l4lb_conn_bucket *bucket;
	enum l4lb_conn_kind kind;
	unsigned long slot;
	u64 equal;

	do {
		bucket = home_of(array, w->hash);
		do {
			/* Pairs with slot_set() and slot_clear(). */
			equal = tags_equal(smp_load_acquire(&bucket->tags),
					   tag_of(w->hash));
			for (; equal; equal &= equal - 1) {
				/* If it was moved, it is found further on. */
				slot = smp_load_acquire(&bucket->slot[first_slot(equal)]);
				conn = slot_conn(slot);
				kind = slot_kind(slot);
				if (!conn || !(w->kinds & BIT(kind)) ||
				    !same_key(conn, w->flow, w->af, kind) ||
				    !l4lb_conn_alive(conn))
					continue;
				*reply = kind == L4LB_CONN_OUT;
				if (*reply || !(w->kinds & BIT(L4LB_CONN_OUT)))
					return conn;
				request = request ?: conn;
			}
			bucket = rcu_dereference(bucket->next);
		} while (unlikely(bucket));
		array = rcu_dereference(array->next);
	} while (unlikely(array));
	return request;
}

/* One copy per family.  *@hash: the flow's hash; 0: there is no table yet. */
static __always_inline struct l4lb_conn *
find_any(struct l4lb_net *ln, const struct l4lb_flow *flow, unsigned int kinds,
	 u64 *hash, bool *reply)
{
	const struct l4lb_conn_table *table = rcu_dereference(ln->conns);
	const bool template = kinds == BIT(L4LB_CONN_TEMPLATE_IN);
	struct wanted w = { .flow = flow, .kinds = kinds };

	*reply = false;
	*hash = 0;
	if (!table)
		return NULL;
	if (flow->af == AF_INET) {
		w.af = AF_INET;
		w.hash = *hash = hash_flow(&table->key, flow, AF_INET, template);
		return look_up(table, &w, reply);
	}
	w.af = AF_INET6;
	w.hash = *hash = hash_flow(&table->key, flow, AF_INET6, template);
	return look_up(table, &w, reply);
}

/* The connection of a packet from a client. */
struct l4lb_conn *l4lb_conn_find_in(struct l4lb_net *ln,
				    const struct l4lb_flow *flow)
{
	bool reply;
	u64 hash;

	return find_any(ln, flow, BIT(L4LB_CONN_IN), &hash, &reply);
}

/* The NATed connection of a packet from a real server. */
struct l4lb_conn *l4lb_conn_find_out(struct l4lb_net *ln,
				     const struct l4lb_flow *flow)
{
	bool reply;
	u64 hash;

	return find_any(ln, flow, BIT(L4LB_CONN_OUT), &hash, &reply);
}

/**
 * l4lb_conn_find_both() - the connection of a packet from either side
 * @ln: namespace
 * @flow: of the packet; its hash is filled in for a new connection
 * @reply: set if the packet is a reply to be translated
 *
 * Context: RCU, BH off.
 * Return: as l4lb_conn_find_out(), or else as l4lb_conn_find_in().
 */
struct l4lb_conn *l4lb_conn_find_both(struct l4lb_net *ln,
				      struct l4lb_flow *flow, bool *reply)
{
	return find_any(ln, flow, BIT(L4LB_CONN_IN) | BIT(L4LB_CONN_OUT),
			&flow->hash, reply);
}

struct l4lb_conn *l4lb_conn_find_template(struct l4lb_net *ln,
					  const struct l4lb_flow *key)
{
	bool reply;
	u64 hash;

	return find_any(ln, key, BIT(L4LB_CONN_TEMPLATE_IN), &hash, &reply);
}

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
		/* As in look_up(). */
		used = ~tags_equal(smp_load_acquire(&bucket->tags), 0) &
		       TAG_HIGHS;
		for (; used; used &= used - 1) {
			/* Likewise. */
			slot = smp_load_acquire(&bucket->slot[first_slot(used)]);
			if (slot_conn(slot) && slot_kind(slot) != L4LB_CONN_OUT)
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

/* The first free slot from @bucket on, in an additional bucket if need be.
 * Without memory its bucket is NULL.
 */
static struct place first_free(struct l4lb_conn_array *array,
			       struct l4lb_conn_bucket *bucket,
			       const spinlock_t *lock)
{
	struct l4lb_conn_bucket *next;
	u64 free;

	while (!(free = tags_equal(bucket->tags, 0))) {
		next = bucket_next(bucket, lock);
		if (!next) {
			next = kmem_cache_zalloc(bucket_cache,
						 GFP_ATOMIC | __GFP_NOWARN);
			if (!next)
				return (struct place){ };
			WRITE_ONCE(array->chained, true);
			rcu_assign_pointer(bucket->next, next);
		}
		bucket = next;
	}
	return (struct place){ bucket, first_slot(free) };
}

/* The last slot from @bucket on, before @end, with replies equal to @conn's. */
static struct place last_equal(struct l4lb_conn_bucket *bucket,
			       struct place end, const struct l4lb_conn *conn,
			       const spinlock_t *lock)
{
	struct place last = { };
	unsigned long slot;
	unsigned int i;

	for (;; bucket = bucket_next(bucket, lock)) {
		for (i = 0; i < L4LB_BUCKET_SLOTS; i++) {
			if (bucket == end.bucket && i == end.i)
				return last;
			slot = bucket->slot[i];
			if (slot_kind(slot) == L4LB_CONN_OUT &&
			    same_replies(slot_conn(slot), conn))
				last = (struct place){ bucket, i };
		}
	}
}

/*
 * Put @slot into @hole, the first free one from @bucket on.  Replies to several
 * connections may have the same header (one client socket that reaches a real
 * server through two VIPs).  As with ip_vs the newest gets them: it takes the
 * place of the first one, which takes that of the next, and so on.  The last
 * one moves first, so that each is always in at least one place.
 */
static void bucket_put(struct l4lb_conn_bucket *bucket, struct place hole,
		       unsigned long slot, u64 tag, const spinlock_t *lock)
{
	struct place equal;

	while (slot_kind(slot) == L4LB_CONN_OUT) {
		equal = last_equal(bucket, hole, slot_conn(slot), lock);
		if (!equal.bucket)
			break;
		slot_set(hole.bucket, hole.i, equal.bucket->slot[equal.i], tag);
		hole = equal;
	}
	slot_set(hole.bucket, hole.i, slot, tag);
}

static bool slot_move(struct l4lb_conn_table *table, struct l4lb_conn_array *to,
		      struct l4lb_conn_bucket *bucket, unsigned int i,
		      const spinlock_t *lock)
{
	unsigned long slot = bucket->slot[i];
	struct l4lb_conn_bucket *home;
	struct place hole;
	u64 hash;

	if (!slot)
		return true;
	hash = hash_slot(table, slot_conn(slot), slot_kind(slot));
	home = home_of(to, hash);
	hole = first_free(to, home, lock);
	if (!hole.bucket)
		return false;
	bucket_put(home, hole, slot, tag_of(hash), lock);
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

/* The connection of @kind with @key, which need not be alive, or NULL.  Clears
 * the slots of dead ones, which are about to be removed anyway.
 */
static struct l4lb_conn *present(struct l4lb_conn_array *array,
				 const struct l4lb_flow *key, u64 hash,
				 enum l4lb_conn_kind kind,
				 const spinlock_t *lock)
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
				conn = slot_conn(bucket->slot[i]);
				if (slot_kind(bucket->slot[i]) != kind ||
				    !same_key(conn, key, key->af, kind))
					continue;
				if (!l4lb_conn_test(conn, L4LB_CONN_DEAD))
					return conn;
				slot_clear(bucket, i);
			}
		}
	return NULL;
}

static struct l4lb_conn *insert_as(struct l4lb_conn_table *table,
				   struct l4lb_conn *conn,
				   enum l4lb_conn_kind kind, u64 hash,
				   const struct l4lb_flow *key)
{
	struct l4lb_conn_array *array, *to;
	spinlock_t *lock = stripe_lock(table, hash);
	struct l4lb_conn_bucket *home;
	struct l4lb_conn *old = NULL;
	struct place hole;

	lockdep_assert_in_softirq();
	spin_lock(lock);
	array = rcu_dereference(table->array);
	to = last_array(array, lock);
	/* Fail if an older equal reply, left behind, would be found first. */
	if (to != array &&
	    !l4lb_conn_bucket_move(table, array, hash >> array->shift) &&
	    kind == L4LB_CONN_OUT)
		old = ERR_PTR(-ENOMEM);
	if (kind != L4LB_CONN_OUT)
		old = present(array, key, hash, kind, lock);
	if (old)
		goto unlock;
	home = home_of(to, hash);
	hole = first_free(to, home, lock);
	if (hole.bucket)
		bucket_put(home, hole, slot_of(conn, kind), tag_of(hash), lock);
	else
		old = ERR_PTR(-ENOMEM);
unlock:
	spin_unlock(lock);
	return old;
}

static void remove_as(struct l4lb_conn_table *table, struct l4lb_conn *conn,
		      enum l4lb_conn_kind kind)
{
	u64 hash = hash_slot(table, conn, kind);
	spinlock_t *lock = stripe_lock(table, hash);
	struct l4lb_conn_bucket *bucket;
	struct l4lb_conn_array *array;
	u64 equal;

	spin_lock_bh(lock);
	for (array = rcu_dereference(table->array); array;
	     array = rcu_dereference(array->next))
		for (bucket = home_of(array, hash); bucket;
		     bucket = bucket_next(bucket, lock)) {
			equal = tags_equal(bucket->tags, tag_of(hash));
			for (; equal; equal &= equal - 1)
				if (bucket->slot[first_slot(equal)] ==
				    slot_of(conn, kind))
					slot_clear(bucket, first_slot(equal));
		}
	spin_unlock_bh(lock);
}

/**
 * l4lb_conn_table_insert() - insert a connection into the table
 * @table: table; l4lb_conn_table_admit() has returned true
 * @conn: connection or template
 * @flow: the flow it is found by, client to VIP
 *
 * Context: RCU, BH off.
 * Return: NULL if @conn is in the table now, the connection that has its key
 * already, or an ERR_PTR().
 */
struct l4lb_conn *l4lb_conn_table_insert(struct l4lb_conn_table *table,
					 struct l4lb_conn *conn,
					 const struct l4lb_flow *flow)
{
	bool has_out = l4lb_conn_has_out(conn);
	struct l4lb_conn *old;
	unsigned int slots;
	u64 hash;

	if (has_out) {
		hash = hash_slot(table, conn, L4LB_CONN_OUT);
		old = insert_as(table, conn, L4LB_CONN_OUT, hash, NULL);
		if (old)
			return old;
	}
	hash = l4lb_conn_table_hash(table, flow, in_kind(conn) ==
				    L4LB_CONN_TEMPLATE_IN);
	old = insert_as(table, conn, in_kind(conn), hash, flow);
	if (old) {
		if (has_out)
			remove_as(table, conn, L4LB_CONN_OUT);
		return old;
	}
	slots = atomic_read(&table->n) +
		(has_out ? atomic_inc_return(&table->n_out) :
			   atomic_read(&table->n_out));
	if (unlikely(slots > READ_ONCE(table->resize_at)))
		l4lb_conn_resize_check(table);
	l4lb_conn_sweep_kick(table);
	return NULL;
}

/* Call it once for each connection in the table.  RCU. */
void l4lb_conn_table_remove(struct l4lb_conn_table *table,
			    struct l4lb_conn *conn)
{
	remove_as(table, conn, in_kind(conn));
	if (!l4lb_conn_has_out(conn))
		return;
	remove_as(table, conn, L4LB_CONN_OUT);
	atomic_dec(&table->n_out);
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

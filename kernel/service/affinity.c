// SPDX-License-Identifier: GPL-2.0
/*
 * Affinity cache: which real servers last served an address.
 *
 * Readers take no lock.  An entry is replaced as a whole, and its memory and
 * its references on real servers last until its readers are done.
 *
 * Remote clients choose the addresses (services by firewall mark), so the hash
 * is keyed, and a full cache evicts an old entry for a new one.
 */
#include "service/affinity.h"

#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "service/server.h"

#define AFFINITY_BITS	11
#define AFFINITY_SWEEP	(60 * HZ)	/* between two sweeps */

struct affinity_entry {
	struct hlist_node		node;
	union nf_inet_addr		addr;
	unsigned long			used;	/* jiffies; racy on purpose */
	struct rcu_head			rcu;
	struct l4lb_affinity_set	set;	/* last: has a flexible array */
};

struct l4lb_affinity {
	struct hlist_head	bucket[1 << AFFINITY_BITS];
	spinlock_t		lock;		/* writes to bucket; count */
	unsigned int		count;
	const u32		*option;	/* enum l4lb_affinity_option */
	u32			seed;
	struct delayed_work	sweep;		/* runs while count > 0 */
};

static u32 entries_max(const struct l4lb_affinity *cache)
{
	return READ_ONCE(cache->option[L4LB_AFFINITY_ENTRIES]);
}

static void entry_free(struct affinity_entry *e)
{
	unsigned int i;

	for (i = 0; i < e->set.n; i++)
		l4lb_server_put(l4lb_server_of(e->set.server[i]));
	kfree(e);
}

static void entry_free_rcu(struct rcu_head *rcu)
{
	entry_free(container_of(rcu, struct affinity_entry, rcu));
}

static void entry_unlink(struct l4lb_affinity *cache, struct affinity_entry *e)
{
	lockdep_assert_held(&cache->lock);
	hlist_del_rcu(&e->node);
	cache->count--;
	call_rcu(&e->rcu, entry_free_rcu);
}

static u32 bucket_of(const struct l4lb_affinity *cache,
		     const union nf_inet_addr *addr)
{
	return jhash2(addr->all, ARRAY_SIZE(addr->all), cache->seed) >>
	       (32 - AFFINITY_BITS);
}

static struct affinity_entry *entry_find(struct l4lb_affinity *cache, u32 bucket,
					 const union nf_inet_addr *addr)
{
	struct affinity_entry *e;

	hlist_for_each_entry_rcu(e, &cache->bucket[bucket], node,
				 lockdep_is_held(&cache->lock))
		if (nf_inet_addr_cmp(&e->addr, addr))
			return e;
	return NULL;
}

/* Evicts the oldest entry of the first bucket from @bucket on that has any.  In
 * a full cache of the default size a bucket has about eight.
 */
static void evict_one(struct l4lb_affinity *cache, u32 bucket)
{
	struct affinity_entry *e, *oldest = NULL;

	for (; !oldest; bucket = (bucket + 1) % ARRAY_SIZE(cache->bucket))
		hlist_for_each_entry(e, &cache->bucket[bucket], node)
			if (!oldest || time_before(READ_ONCE(e->used),
						   READ_ONCE(oldest->used)))
				oldest = e;
	entry_unlink(cache, oldest);
}

/* Use is noted once a second at most, so an entry may look a second older than
 * it is.  Adding that second forgets it late rather than early.
 */
static bool entry_is_idle(const struct l4lb_affinity *cache,
			  const struct affinity_entry *e)
{
	u32 expire = READ_ONCE(cache->option[L4LB_AFFINITY_EXPIRE]);

	return time_after(jiffies, READ_ONCE(e->used) + (expire + 1UL) * HZ);
}

/* Is an entry useless: idle for too long, or with a removed server? */
static bool entry_is_stale(const struct l4lb_affinity *cache,
			   const struct affinity_entry *e)
{
	unsigned int i;

	if (entry_is_idle(cache, e))
		return true;
	for (i = 0; i < e->set.n; i++)
		if (!l4lb_server_available(l4lb_server_of(e->set.server[i])))
			return true;
	return false;
}

static void sweep_bucket(struct l4lb_affinity *cache, struct hlist_head *bucket)
{
	struct affinity_entry *e;
	struct hlist_node *next;

	if (hlist_empty(bucket))
		return;
	spin_lock_bh(&cache->lock);
	hlist_for_each_entry_safe(e, next, bucket, node)
		if (entry_is_stale(cache, e))
			entry_unlink(cache, e);
	spin_unlock_bh(&cache->lock);
}

/* Evicts entries down to the limit, which may have been lowered a lot: one at a
 * time, because packets wait for the lock, and each from another bucket.
 */
static void sweep_surplus(struct l4lb_affinity *cache)
{
	u32 bucket = 0;
	bool surplus;

	do {
		spin_lock_bh(&cache->lock);
		surplus = cache->count > entries_max(cache);
		if (surplus)
			evict_one(cache, bucket++ % ARRAY_SIZE(cache->bucket));
		spin_unlock_bh(&cache->lock);
		cond_resched();
	} while (surplus);
}

static void affinity_sweep(struct work_struct *work)
{
	struct l4lb_affinity *cache =
		container_of(work, struct l4lb_affinity, sweep.work);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cache->bucket); i++) {
		sweep_bucket(cache, &cache->bucket[i]);
		cond_resched();
	}
	sweep_surplus(cache);
	spin_lock_bh(&cache->lock);
	if (cache->count)
		queue_delayed_work(system_power_efficient_wq, &cache->sweep,
				   AFFINITY_SWEEP);
	spin_unlock_bh(&cache->lock);
}

/**
 * l4lb_affinity_find() - the servers that last served an address
 * @cache: the service's cache
 * @addr: the address
 *
 * Context: RCU.
 * Return: their set, valid in the caller's RCU section, or NULL.
 */
const struct l4lb_affinity_set *
l4lb_affinity_find(struct l4lb_affinity *cache, const union nf_inet_addr *addr)
{
	struct affinity_entry *e;

	e = entry_find(cache, bucket_of(cache, addr), addr);
	if (!e || entry_is_idle(cache, e))
		return NULL;
	/* One write a second keeps the cache line shared between CPUs. */
	if (jiffies - READ_ONCE(e->used) >= HZ)
		WRITE_ONCE(e->used, jiffies);
	return &e->set;
}
EXPORT_SYMBOL_GPL(l4lb_affinity_find);

/* A new entry, with its references; NULL without memory, or if one of the
 * servers is being freed.
 */
static struct affinity_entry *entry_create(const union nf_inet_addr *addr,
					   struct l4lb_sched_server *const *server,
					   unsigned int n)
{
	struct affinity_entry *e;
	unsigned int i;

	e = kmalloc(struct_size(e, set.server, n), GFP_ATOMIC | __GFP_NOWARN);
	if (!e)
		return NULL;
	e->addr = *addr;
	e->used = jiffies;
	e->set.changed = jiffies;
	e->set.n = n;
	for (i = 0; i < n; i++) {
		if (!refcount_inc_not_zero(&l4lb_server_of(server[i])->refs)) {
			e->set.n = i;
			entry_free(e);
			return NULL;
		}
		e->set.server[i] = server[i];
	}
	return e;
}

/**
 * l4lb_affinity_store() - remember the servers of an address
 * @cache: the service's cache
 * @addr: the address; its present entry, if any, is replaced
 * @server: the servers, newest first
 * @n: number of servers, 1 to %L4LB_AFFINITY_SERVERS
 *
 * Without memory the address is forgotten: the next flow chooses anew.
 * Context: RCU, BH off.
 */
void l4lb_affinity_store(struct l4lb_affinity *cache,
			 const union nf_inet_addr *addr,
			 struct l4lb_sched_server *const *server,
			 unsigned int n)
{
	struct affinity_entry *old, *e = entry_create(addr, server, n);
	u32 bucket = bucket_of(cache, addr);

	spin_lock(&cache->lock);
	old = entry_find(cache, bucket, addr);
	if (old)
		entry_unlink(cache, old);
	if (e) {
		if (cache->count >= entries_max(cache))
			evict_one(cache, bucket);
		hlist_add_head_rcu(&e->node, &cache->bucket[bucket]);
		if (!cache->count++)
			queue_delayed_work(system_power_efficient_wq,
					   &cache->sweep, AFFINITY_SWEEP);
	}
	spin_unlock(&cache->lock);
}
EXPORT_SYMBOL_GPL(l4lb_affinity_store);

/**
 * l4lb_affinity_due() - should a set lose a server?
 * @set: from l4lb_affinity_find()
 * @seconds: time without a change after which it should
 *
 * Context: RCU.
 * Return: true if the set has not changed for longer.
 */
bool l4lb_affinity_due(const struct l4lb_affinity_set *set, u32 seconds)
{
	return time_after(jiffies, set->changed + (unsigned long)seconds * HZ);
}
EXPORT_SYMBOL_GPL(l4lb_affinity_due);

/**
 * l4lb_affinity_create() - an empty cache
 * @option: the scheduler's options; the first are enum l4lb_affinity_option
 *
 * Context: process, may sleep.
 * Return: the cache, or ERR_PTR(-ENOMEM).
 */
void *l4lb_affinity_create(const u32 *option)
{
	struct l4lb_affinity *cache = kvzalloc(sizeof(*cache), GFP_KERNEL_ACCOUNT);

	if (!cache)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&cache->lock);
	cache->option = option;
	cache->seed = get_random_u32();
	INIT_DELAYED_WORK(&cache->sweep, affinity_sweep);
	return cache;
}
EXPORT_SYMBOL_GPL(l4lb_affinity_create);

/**
 * l4lb_affinity_changed() - apply new options to a cache
 * @state: the cache
 *
 * Sweeps the cache at once.  Lookups use the new options already.
 *
 * Context: any; the cache is not being destroyed.
 */
void l4lb_affinity_changed(void *state)
{
	struct l4lb_affinity *cache = state;

	mod_delayed_work(system_power_efficient_wq, &cache->sweep, 0);
}
EXPORT_SYMBOL_GPL(l4lb_affinity_changed);

/**
 * l4lb_affinity_destroy() - free a cache with all its entries
 * @state: the cache; the last pool is gone, so it has no readers
 *
 * Context: process, may sleep.
 */
void l4lb_affinity_destroy(void *state)
{
	struct l4lb_affinity *cache = state;
	struct affinity_entry *e;
	struct hlist_node *next;
	unsigned int i;

	cancel_delayed_work_sync(&cache->sweep);
	for (i = 0; i < ARRAY_SIZE(cache->bucket); i++)
		hlist_for_each_entry_safe(e, next, &cache->bucket[i], node)
			entry_free(e);
	kvfree(cache);
}
EXPORT_SYMBOL_GPL(l4lb_affinity_destroy);

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Affinity cache: which real servers last served an address.  One per service
 * that is scheduled by lblc or lblcr; those files include this one.
 */
#ifndef _L4LB_AFFINITY_H
#define _L4LB_AFFINITY_H

#include "sched.h"

/* A cache has limits, because remote clients choose the addresses. */
#define L4LB_AFFINITY_SERVERS	64	/* per address */

/* A time in seconds, a day by default; two weeks fit jiffies at any HZ. */
#define L4LB_AFFINITY_TIME						\
	.min = 1, .max = 14 * 86400, .def = 86400, .sysctl = true

/* Options of the cache.  A scheduler with a cache has them first in its table,
 * in this order.  A full cache evicts the oldest of a few entries.
 */
enum l4lb_affinity_option {
	L4LB_AFFINITY_EXPIRE,
	L4LB_AFFINITY_ENTRIES,
	L4LB_AFFINITY_OWN,	/* index of the scheduler's first own option */
};

#define L4LB_AFFINITY_OPTIONS						\
	[L4LB_AFFINITY_EXPIRE] = {					\
		.name = "expire", L4LB_AFFINITY_TIME,			\
		.what = "seconds idle until an address is forgotten",	\
	},								\
	[L4LB_AFFINITY_ENTRIES] = {					\
		.name = "entries", .min = 1, .max = 65536, .def = 16384, \
		.what = "addresses remembered at most",			\
	}

/* An address cache, opaque to schedulers. */
struct l4lb_affinity;

/**
 * struct l4lb_affinity_set - the servers of one address
 * @changed: jiffies when the set last changed
 * @n: number of entries in @server, 1 to %L4LB_AFFINITY_SERVERS
 * @server: its servers, newest first; none is freed while the reader's RCU
 *	section lasts, but any may have been removed: see l4lb_server_usable()
 *
 * A published set is never modified; changing it means storing a new one.
 */
struct l4lb_affinity_set {
	unsigned long		changed;
	unsigned int		n;
	struct l4lb_sched_server	*server[] __counted_by(n);
};

/* l4lb_sched_ops.rank of a scheduler that calls l4lb_affinity_saturated() and
 * l4lb_pool_least().
 */
#define L4LB_AFFINITY_RANKS	{ l4lb_rank_least, l4lb_affinity_rank_idle }

/* Control path: init(), exit() and changed() of struct l4lb_sched_ops. */
void *l4lb_affinity_create(const u32 *option);
void l4lb_affinity_destroy(void *cache);
void l4lb_affinity_changed(void *cache);

/* Packet path: RCU, BH off. */
const struct l4lb_affinity_set *
l4lb_affinity_find(struct l4lb_affinity *cache,
		   const union nf_inet_addr *addr);
void l4lb_affinity_store(struct l4lb_affinity *cache,
			 const union nf_inet_addr *addr,
			 struct l4lb_sched_server *const *server,
			 unsigned int n);
bool l4lb_affinity_due(const struct l4lb_affinity_set *set, u32 seconds);

/* 0 for a server with fewer active connections than half of its weight. */
static inline struct l4lb_rank
l4lb_affinity_rank_idle(const struct l4lb_sched_server *d)
{
	return (struct l4lb_rank) {
		.weight = (s64)atomic_read(&d->active) * 2 <
			  READ_ONCE(d->weight),
	};
}

/**
 * l4lb_affinity_saturated() - should an address move away from its server?
 * @pool: the service's servers
 * @d: the server that serves the address
 *
 * True if @d has more active connections than its weight, while some server of
 * the pool has fewer than half of its own weight.
 */
static inline bool l4lb_affinity_saturated(const struct l4lb_pool *pool,
					   const struct l4lb_sched_server *d)
{
	return atomic_read(&d->active) > READ_ONCE(d->weight) &&
	       l4lb_pool_lowest(pool, l4lb_affinity_rank_idle);
}

#endif /* _L4LB_AFFINITY_H */

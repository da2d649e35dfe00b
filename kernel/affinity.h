/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Affinity cache: which real servers last served an address.  One per service
 * that is scheduled by lblc or lblcr; those files include this one.
 */
#ifndef _L4LB_AFFINITY_H
#define _L4LB_AFFINITY_H

#include "sched.h"

/* Bounds of a cache: a remote client chooses the addresses. */
#define L4LB_AFFINITY_ENTRIES	16384	/* the oldest of a few makes room */
#define L4LB_AFFINITY_SERVERS	64	/* per address */
#define L4LB_AFFINITY_EXPIRE	86400	/* default, seconds */

/**
 * struct l4lb_affinity - an address cache
 *
 * Opaque to schedulers.
 */
struct l4lb_affinity;

/**
 * struct l4lb_affinity_set - the servers of one address
 * @changed: jiffies when the set changed last
 * @n: number of entries in @dest, 1 to %L4LB_AFFINITY_SERVERS
 * @dest: its servers, newest first; none is freed while the reader's RCU
 *	section lasts, but any may have been removed: see l4lb_dest_usable()
 *
 * A published set is never modified; changing it means storing a new one.
 */
struct l4lb_affinity_set {
	unsigned long		changed;
	unsigned int		n;
	struct l4lb_dest	*dest[] __counted_by(n);
};

/* Control path; may sleep.  create() returns an ERR_PTR() without memory. */
void *l4lb_affinity_create(void);
void l4lb_affinity_destroy(void *cache);

/* Packet path: RCU, BH off. */
const struct l4lb_affinity_set *
l4lb_affinity_find(struct l4lb_affinity *cache,
		   const union nf_inet_addr *addr);
void l4lb_affinity_store(struct l4lb_affinity *cache,
			 const union nf_inet_addr *addr,
			 struct l4lb_dest *const *dest, unsigned int n);
bool l4lb_affinity_due(const struct l4lb_affinity *cache,
		       const struct l4lb_affinity_set *set);
bool l4lb_affinity_saturated(const struct l4lb_pool *pool,
			     const struct l4lb_dest *d);

#endif /* _L4LB_AFFINITY_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * Maglev hashing: the client's address decides the real server, in proportion
 * to the weights, and a change of one server moves few clients of the others.
 *
 * Source: Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load
 * Balancer", NSDI 2016, section 3.4; hash functions, table size, weights and
 * flags as in IPVS, so that l4lb and IPVS choose the same server.
 *
 *	mh-fallback	an unusable server's clients go elsewhere
 *	mh-port		the client's port decides, too
 *
 * A server that gets weight 0 keeps its places: its clients are refused, or
 * fall back, but no other client moves.  Wrong tool where many clients come
 * from few addresses.
 */
#include "sched.h"

#include <linux/bitops.h>
#include <linux/gcd.h>
#include <linux/mm.h>
#include <linux/siphash.h>
#include <linux/slab.h>

#define MH_SIZE		4093	/* prime: every skip visits every place */
#define MH_TURN_BITS	6	/* highest weight: below 64 turns a round */

/* A server while the places are dealt out. */
struct mh_seat {
	u32	place;		/* in its permutation of all places */
	u32	skip;		/* to the next place */
	u32	turns;		/* places per round */
};

static const hsiphash_key_t mh_place_key = { { 2654435761UL, 2654435761UL } };
static const hsiphash_key_t mh_skip_key = { { 2654446892UL, 2654446892UL } };

static u32 mh_place(u32 value)
{
	return hsiphash_1u32(value, &mh_place_key) % MH_SIZE;
}

static void mh_seat_all(struct mh_seat *seat, const struct l4lb_pool *pool)
{
	u32 unit = 0, highest = 0, weight, value;
	unsigned int i, shift;

	for (i = 0; i < pool->n; i++) {
		weight = READ_ONCE(pool->server[i]->last_weight);
		unit = gcd(weight, unit);
		highest = max(highest, weight);
	}
	unit = max(unit, 1U);
	shift = max(fls(highest / unit) - MH_TURN_BITS, 0);
	for (i = 0; i < pool->n; i++) {
		const struct l4lb_sched_server *d = pool->server[i];

		value = l4lb_addr_fold(pool, &d->addr) + ntohs(d->port);
		weight = READ_ONCE(d->last_weight);
		seat[i].place = mh_place(value);
		seat[i].skip = hsiphash_1u32(value, &mh_skip_key) %
			       (MH_SIZE - 1) + 1;
		seat[i].turns = weight ? max(weight / unit >> shift, 1U) : 0;
	}
}

/* Returns the number of places that were dealt to the server. */
static unsigned int mh_deal(struct l4lb_sched_server **place, unsigned int left,
			    struct mh_seat *seat, struct l4lb_sched_server *d)
{
	unsigned int n = min(seat->turns, left), i;

	for (i = 0; i < n; i++) {
		while (place[seat->place])
			seat->place = (seat->place + seat->skip) % MH_SIZE;
		place[seat->place] = d;
	}
	return n;
}

static int mh_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	unsigned int left = MH_SIZE, before, i;
	struct l4lb_sched_server **place;
	struct mh_seat *seat;

	place = kvcalloc(MH_SIZE, sizeof(*place), GFP_KERNEL_ACCOUNT);
	seat = kvcalloc(pool->n + 1, sizeof(*seat), GFP_KERNEL_ACCOUNT);
	if (!place || !seat) {
		kvfree(seat);
		kvfree(place);
		return -ENOMEM;
	}
	mh_seat_all(seat, pool);
	do {
		before = left;
		for (i = pool->n; i-- && left;)
			left -= mh_deal(place, left, &seat[i], pool->server[i]);
	} while (left && left != before);
	kvfree(seat);
	pool->table = place;
	return 0;
}

static void mh_free(struct l4lb_pool *pool)
{
	kvfree(pool->table);
}

static struct l4lb_sched_server *mh_fallback(const struct l4lb_pool *pool,
					     u32 value,
					     u32 first)
{
	struct l4lb_sched_server **place = pool->table, *d;
	unsigned int i;

	for (i = 0; i < MH_SIZE; i++) {
		d = place[mh_place(value + (i + first) % MH_SIZE)];
		if (!d || l4lb_server_usable(d))
			return d;
	}
	return NULL;
}

static struct l4lb_sched_server *mh_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	u32 value = l4lb_flow_source(pool, flow), first = mh_place(value);
	struct l4lb_sched_server **place = pool->table, *d = place[first];

	if (!d || l4lb_server_usable(d))
		return d;
	/* Without a usable server, do not spend thousands of hashes a flow. */
	if (pool->flags & L4LB_SCHED_FALLBACK && l4lb_pool_fastest(pool))
		return mh_fallback(pool, value, first);
	return NULL;
}

static struct l4lb_sched_ops mh_sched = {
	.name	= "mh",
	.owner	= THIS_MODULE,
	.pick	= mh_pick,
	.build	= mh_build,
	.free	= mh_free,
	.flags	= L4LB_SCHED_FALLBACK | L4LB_SCHED_PORT,
};
module_l4lb_sched(mh_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb Maglev hashing scheduler");
MODULE_VERSION("0.1.0");

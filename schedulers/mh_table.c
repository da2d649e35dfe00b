// SPDX-License-Identifier: GPL-2.0
/*
 * Each server has a permutation of all places, made of its address and port. In
 * turn, each takes the next of its places that is free, or as many as its weight
 * says, until all are taken.
 *
 * Source: see mh.c.
 */
#include "mh_table.h"

#include <linux/bitops.h>
#include <linux/gcd.h>
#include <linux/mm.h>
#include <linux/slab.h>

#define MH_TURN_BITS	6	/* highest weight: below 64 turns a round */

/* A server while the places are dealt out. */
struct mh_seat {
	u32	place;		/* in its permutation of all places */
	u32	skip;		/* to the next place */
	u32	turns;		/* places per round */
};

static const hsiphash_key_t mh_skip_key = { { 2654446892UL, 2654446892UL } };

static void mh_seat(struct mh_seat *seat, const struct mh_table *t,
		    const struct l4lb_pool *pool,
		    const struct l4lb_sched_server *d)
{
	u64 secret;
	u32 value;

	if (t->keyed) {
		secret = mh_secret(t, &d->addr, d->port);
		seat->place = lower_32_bits(secret) % MH_SIZE;
		seat->skip = upper_32_bits(secret) % (MH_SIZE - 1) + 1;
		return;
	}
	value = l4lb_addr_fold(pool, &d->addr) + ntohs(d->port);
	seat->place = mh_public(value);
	seat->skip = hsiphash_1u32(value, &mh_skip_key) % (MH_SIZE - 1) + 1;
}

static void mh_seat_all(struct mh_seat *seat, const struct mh_table *t,
			const struct l4lb_pool *pool,
			struct l4lb_sched_server *const *server)
{
	u32 unit = 0, highest = 0, weight;
	unsigned int i, shift;

	for (i = 0; i < pool->n; i++) {
		weight = READ_ONCE(server[i]->last_weight);
		unit = gcd(weight, unit);
		highest = max(highest, weight);
	}
	unit = max(unit, 1U);
	shift = max(fls(highest / unit) - MH_TURN_BITS, 0);
	for (i = 0; i < pool->n; i++) {
		weight = READ_ONCE(server[i]->last_weight);
		mh_seat(&seat[i], t, pool, server[i]);
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

static void mh_deal_all(struct mh_table *t, struct mh_seat *seat,
			struct l4lb_sched_server *const *server, unsigned int n)
{
	unsigned int left = MH_SIZE, before, i;

	do {
		before = left;
		for (i = n; i-- && left;)
			left -= mh_deal(t->place, left, &seat[i], server[i]);
	} while (left && left != before);
}

struct mh_table *mh_table_new(const struct l4lb_pool *pool, bool by_address,
			      bool keyed)
{
	struct l4lb_sched_server **server;
	struct mh_seat *seat;
	struct mh_table *t;

	t = kvzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	server = l4lb_pool_order(pool, by_address);
	seat = kvcalloc(pool->n + 1, sizeof(*seat), GFP_KERNEL_ACCOUNT);
	if (!t || !server || !seat) {
		kvfree(t);
		t = NULL;
		goto out;
	}
	t->keyed = keyed;
	t->key = *pool->key;
	mh_seat_all(seat, t, pool, server);
	mh_deal_all(t, seat, server, pool->n);
out:
	kvfree(seat);
	kvfree(server);
	return t;
}

void mh_table_free(struct mh_table *t)
{
	memzero_explicit(&t->key, sizeof(t->key));
	kvfree(t);
}

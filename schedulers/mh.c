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
 *	order		places are dealt by the servers' age, as in IPVS, or address
 *	key		a secret, without which nobody knows a client's server
 *
 * Directors that have the same servers, weights, flags and options, order
 * "address" among them, choose the same server for a client.  Without a key the
 * hash is public, and folds an IPv6 address to 32 bits: clients can choose
 * addresses and ports that all get the same server.  With a key the whole
 * address and port are hashed.
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

enum { MH_ORDER, MH_KEY };

struct mh_table {
	siphash_key_t			key;
	bool				keyed;
	struct l4lb_sched_server	*place[MH_SIZE];
};

/* A server while the places are dealt out. */
struct mh_seat {
	u32	place;		/* in its permutation of all places */
	u32	skip;		/* to the next place */
	u32	turns;		/* places per round */
};

static const hsiphash_key_t mh_place_key = { { 2654435761UL, 2654435761UL } };
static const hsiphash_key_t mh_skip_key = { { 2654446892UL, 2654446892UL } };

static u32 mh_public(u32 value)
{
	return hsiphash_1u32(value, &mh_place_key) % MH_SIZE;
}

/* Not folded: addresses that look alike before the hash would look alike after. */
static u64 mh_secret(const struct mh_table *t, const union nf_inet_addr *addr,
		     __be16 port)
{
	return siphash_3u64((u64)ntohl(addr->ip6[0]) << 32 | ntohl(addr->ip6[1]),
			    (u64)ntohl(addr->ip6[2]) << 32 | ntohl(addr->ip6[3]),
			    ntohs(port), &t->key);
}

static void mh_seat(struct mh_seat *seat, const struct l4lb_pool *pool,
		    const struct l4lb_sched_server *d)
{
	const struct mh_table *t = pool->table;
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

static void mh_seat_all(struct mh_seat *seat, const struct l4lb_pool *pool,
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
		mh_seat(&seat[i], pool, server[i]);
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

static int mh_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	struct l4lb_sched_server **server;
	struct mh_seat *seat;
	struct mh_table *t;

	t = kvzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	server = l4lb_pool_order(pool, l4lb_option(pool, MH_ORDER));
	seat = kvcalloc(pool->n + 1, sizeof(*seat), GFP_KERNEL_ACCOUNT);
	if (!t || !server || !seat) {
		kvfree(seat);
		kvfree(server);
		kvfree(t);
		return -ENOMEM;
	}
	t->keyed = l4lb_option(pool, MH_KEY);
	t->key = *pool->key;
	pool->table = t;
	mh_seat_all(seat, pool, server);
	mh_deal_all(t, seat, server, pool->n);
	kvfree(seat);
	kvfree(server);
	return 0;
}

static void mh_free(struct l4lb_pool *pool)
{
	struct mh_table *t = pool->table;

	memzero_explicit(&t->key, sizeof(t->key));
	kvfree(t);
}

/* What is hashed for a client; mh_place() of it, or of numbers close to it, are
 * its places.
 */
static u64 mh_client(const struct l4lb_pool *pool, const struct mh_table *t,
		     const struct l4lb_flow *flow)
{
	if (likely(!t->keyed))
		return l4lb_flow_source(pool, flow);
	return mh_secret(t, &flow->saddr,
			 pool->flags & L4LB_SCHED_PORT ? flow->sport : 0);
}

static u32 mh_place(const struct mh_table *t, u64 value)
{
	if (likely(!t->keyed))
		return mh_public(value);
	return siphash_1u64(value, &t->key) % MH_SIZE;
}

static struct l4lb_sched_server *mh_fallback(const struct mh_table *t,
					     u64 value, u32 first)
{
	struct l4lb_sched_server *d;
	unsigned int i;

	for (i = 0; i < MH_SIZE; i++) {
		d = t->place[mh_place(t, value + (i + first) % MH_SIZE)];
		if (!d || l4lb_server_usable(d))
			return d;
	}
	return NULL;
}

static struct l4lb_sched_server *mh_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	const struct mh_table *t = pool->table;
	u64 value = mh_client(pool, t, flow);
	u32 first = mh_place(t, value);
	struct l4lb_sched_server *d = t->place[first];

	if (!d || l4lb_server_usable(d))
		return d;
	/* Without a usable server, do not spend thousands of hashes a flow. */
	if (pool->flags & L4LB_SCHED_FALLBACK && l4lb_pool_fastest(pool))
		return mh_fallback(t, value, first);
	return NULL;
}

static const struct l4lb_sched_option mh_options[] = {
	[MH_ORDER] = L4LB_OPTION_ORDER,
	[MH_KEY] = {
		.name = "key", .max = U32_MAX, .rebuild = true, .key = true,
		.what = "secret of the hash, the same on all directors; shown as a fingerprint",
	},
};

static struct l4lb_sched_ops mh_sched = {
	.name		= "mh",
	.owner		= THIS_MODULE,
	.pick		= mh_pick,
	.build		= mh_build,
	.free		= mh_free,
	.options	= mh_options,
	.n_options	= ARRAY_SIZE(mh_options),
	.flags		= L4LB_SCHED_FALLBACK | L4LB_SCHED_PORT,
};
module_l4lb_sched(mh_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb Maglev hashing scheduler");
MODULE_VERSION("0.1.0");

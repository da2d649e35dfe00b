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
#include "mh_table.h"

enum { MH_ORDER, MH_KEY };

static int mh_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	pool->table = mh_table_new(pool, l4lb_option(pool, MH_ORDER),
				   l4lb_option(pool, MH_KEY));
	return pool->table ? 0 : -ENOMEM;
}

static void mh_free(struct l4lb_pool *pool)
{
	mh_table_free(pool->table);
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
	.maps		= L4LB_MAPS_SOURCE,
};
module_l4lb_sched(mh_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb Maglev hashing scheduler");
MODULE_VERSION("0.1.0");

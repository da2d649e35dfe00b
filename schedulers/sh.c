// SPDX-License-Identifier: GPL-2.0
/*
 * Source hashing: the client's address decides the real server, so a client
 * keeps its server without any stored state.
 *
 * Source: "Scheduling techniques in a Linux cluster web server"; placement,
 * weights and flags as in IPVS.  256 buckets are dealt out in rounds, beginning
 * with the server added last: each gets as many in a row as its weight.
 *
 *	sh-fallback	an unusable server's clients go elsewhere
 *	sh-port		the client's port decides, too
 *	order		buckets are dealt by the servers' age, as in IPVS, or address
 *
 * Wrong tool where many clients come from few addresses, and where adding a
 * server must not move the clients of others (mh).
 */
#include "sched.h"

#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/slab.h>

#define SH_BITS	8
#define SH_SIZE	BIT(SH_BITS)

enum { SH_ORDER };

static int sh_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	struct l4lb_sched_server **bucket, **server, *d;
	unsigned int filled = 0, i = 0;
	int turns;

	bucket = kcalloc(SH_SIZE, sizeof(*bucket), GFP_KERNEL_ACCOUNT);
	server = l4lb_pool_order(pool, l4lb_option(pool, SH_ORDER));
	if (!bucket || !server) {
		kvfree(server);
		kfree(bucket);
		return -ENOMEM;
	}
	while (pool->n && filled < SH_SIZE) {
		d = server[pool->n - 1 - i++ % pool->n];
		/* Weight 0 keeps one bucket, so that fewer clients move. */
		turns = max(READ_ONCE(d->weight), 1);
		while (turns-- && filled < SH_SIZE)
			bucket[filled++] = d;
	}
	kvfree(server);
	pool->table = bucket;
	return 0;
}

static void sh_free(struct l4lb_pool *pool)
{
	kfree(pool->table);
}

/* Buckets are tried in an order that depends on the client. */
static struct l4lb_sched_server *sh_fallback(const struct l4lb_pool *pool,
					     u32 hash)
{
	struct l4lb_sched_server **bucket = pool->table;
	unsigned int i;

	for (i = 0; i < SH_SIZE; i++) {
		struct l4lb_sched_server *d = bucket[(i + 2 * hash) % SH_SIZE];

		if (l4lb_server_usable(d))
			return d;
	}
	return NULL;
}

static struct l4lb_sched_server *sh_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	u32 hash = hash_32(l4lb_flow_source(pool, flow), SH_BITS);
	struct l4lb_sched_server **bucket = pool->table;
	struct l4lb_sched_server *d = bucket[hash];

	if (!d || l4lb_server_usable(d))
		return d;
	if (pool->flags & L4LB_SCHED_FALLBACK)
		return sh_fallback(pool, hash);
	return NULL;
}

static const struct l4lb_sched_option sh_options[] = {
	[SH_ORDER] = L4LB_OPTION_ORDER,
};

static struct l4lb_sched_ops sh_sched = {
	.name		= "sh",
	.owner		= THIS_MODULE,
	.pick		= sh_pick,
	.build		= sh_build,
	.free		= sh_free,
	.options	= sh_options,
	.n_options	= ARRAY_SIZE(sh_options),
	.flags		= L4LB_SCHED_FALLBACK | L4LB_SCHED_PORT,
	.maps		= L4LB_MAPS_SOURCE,
};
module_l4lb_sched(sh_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb source hashing scheduler");
MODULE_VERSION("0.1.0");

// SPDX-License-Identifier: GPL-2.0
/*
 * Destination hashing: the address that the client asked for decides the real
 * server, whatever the weights.
 *
 * Source: "Scheduling techniques in a Linux cluster web server"; placement as
 * in IPVS: the address is hashed to one of 256 buckets, which are assigned to
 * the servers in turn, beginning with the one added last.
 *
 *	order		by the servers' age, as in IPVS, or by their address
 *
 * Meant for caches behind a service by firewall mark, where many destinations
 * are in play.  There is no second choice: if the server of an address is
 * unusable the flow is refused, because any other cache would be wrong.
 * Wrong tool for a single VIP: one server gets all.
 */
#include "sched.h"

#include <linux/hash.h>
#include <linux/mm.h>

#define DH_BITS	8

enum { DH_ORDER };

static int dh_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	pool->table = l4lb_pool_order(pool, l4lb_option(pool, DH_ORDER));
	return pool->table ? 0 : -ENOMEM;
}

static void dh_free(struct l4lb_pool *pool)
{
	kvfree(pool->table);
}

static struct l4lb_sched_server *dh_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	struct l4lb_sched_server **server = pool->table, *d;
	u32 bucket;

	if (!pool->n)
		return NULL;
	bucket = hash_32(l4lb_addr_fold(pool, &flow->daddr), DH_BITS);
	d = server[pool->n - 1 - bucket % pool->n];
	return l4lb_server_usable(d) ? d : NULL;
}

static const struct l4lb_sched_option dh_options[] = {
	[DH_ORDER] = L4LB_OPTION_ORDER,
};

static struct l4lb_sched_ops dh_sched = {
	.name		= "dh",
	.owner		= THIS_MODULE,
	.pick		= dh_pick,
	.build		= dh_build,
	.free		= dh_free,
	.options	= dh_options,
	.n_options	= ARRAY_SIZE(dh_options),
	.maps		= L4LB_MAPS_DESTINATION,
};
module_l4lb_sched(dh_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb destination hashing scheduler");
MODULE_VERSION("0.1.0");

// SPDX-License-Identifier: GPL-2.0
/*
 * Locality-based least connection: an address that clients ask for stays with
 * the real server that served it last, whose cache is warm, until that server
 * is saturated while another one is half idle; then it moves to the least
 * loaded (wlc) and stays there.
 *
 * Source: "Scheduling techniques in a Linux cluster web server"; saturation as
 * in IPVS, see l4lb_affinity_saturated().  Unlike in IPVS an address also moves
 * away from an overloaded server (upper threshold).
 *
 *	expire		seconds idle until an address is forgotten
 *	entries		addresses remembered at most
 *
 * Meant for caches behind a service by firewall mark, where many addresses are
 * in play.  Wrong tool for a single VIP: one server gets all until it is full.
 */
#include "service/affinity.h"

static struct l4lb_sched_server *lblc_pick(const struct l4lb_pool *pool,
					   const struct l4lb_flow *flow)
{
	const struct l4lb_affinity_set *known;
	struct l4lb_sched_server *d;

	known = l4lb_affinity_find(pool->state, &flow->daddr);
	if (known && l4lb_server_usable(known->server[0]) &&
	    !l4lb_affinity_saturated(pool, known->server[0]))
		return known->server[0];

	d = l4lb_pool_least(pool);
	if (d && !(known && known->server[0] == d))
		l4lb_affinity_store(pool->state, &flow->daddr, &d, 1);
	return d;
}

static const struct l4lb_sched_option lblc_options[] = {
	L4LB_AFFINITY_OPTIONS,
};

static struct l4lb_sched_ops lblc_sched = {
	.name		= "lblc",
	.sysctl		= "lblc_expiration",
	.owner		= THIS_MODULE,
	.pick		= lblc_pick,
	.rank		= L4LB_AFFINITY_RANKS,
	.greedy		= L4LB_GREEDY_WEIGHTED,
	.init		= l4lb_affinity_create,
	.exit		= l4lb_affinity_destroy,
	.changed	= l4lb_affinity_changed,
	.options	= lblc_options,
	.n_options	= ARRAY_SIZE(lblc_options),
};
module_l4lb_sched(lblc_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb locality-based least connection scheduler");
MODULE_VERSION("0.1.0");

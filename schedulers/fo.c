// SPDX-License-Identifier: GPL-2.0
/*
 * Weighted failover: all flows go to the usable real server with the highest
 * weight; the others wait until it has weight 0 or is overloaded.
 *
 * Source: IPVS.  Of several servers with the highest weight the one that was
 * added last is chosen.
 *
 * Wrong tool for spreading load.
 */
#include "sched.h"

/* Of 1 / weight, the lowest is that of the highest weight. */
static inline struct l4lb_rank fo_rank(const struct l4lb_sched_server *d)
{
	return (struct l4lb_rank) {
		.load = 1, .weight = l4lb_server_capacity(d),
	};
}

static struct l4lb_sched_server *fo_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	return l4lb_pool_lowest(pool, fo_rank);
}

static struct l4lb_sched_ops fo_sched = {
	.name	= "fo",
	.owner	= THIS_MODULE,
	.pick	= fo_pick,
	.rank	= { fo_rank },
};
module_l4lb_sched(fo_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb weighted failover scheduler");
MODULE_VERSION("0.1.0");

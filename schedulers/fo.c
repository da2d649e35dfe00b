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

static struct l4lb_sched_server *fo_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	struct l4lb_sched_server *best = NULL;
	int weight, highest = 0;
	unsigned int i;

	for (i = pool->n; i--;) {
		struct l4lb_sched_server *d = pool->server[i];

		weight = READ_ONCE(d->weight);
		if (weight > highest && !READ_ONCE(d->overloaded)) {
			best = d;
			highest = weight;
		}
	}
	return best;
}

static struct l4lb_sched_ops fo_sched = {
	.name	= "fo",
	.owner	= THIS_MODULE,
	.pick	= fo_pick,
};
module_l4lb_sched(fo_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb weighted failover scheduler");
MODULE_VERSION("0.1.0");

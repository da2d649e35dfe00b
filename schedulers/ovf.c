// SPDX-License-Identifier: GPL-2.0
/*
 * Weighted overflow: flows go to the usable real server with the highest
 * weight until it has more active connections than its weight, then to the
 * next lower, and so on; when all are full, new connections are refused.
 *
 * Source: IPVS.  Of several servers with the highest weight the one that was
 * added last is chosen.
 *
 * The weight is a number of connections here.  Wrong tool for UDP, whose
 * connections are never active, and for spreading load.
 */
#include "sched.h"

static struct l4lb_sched_server *ovf_pick(const struct l4lb_pool *pool,
					  const struct l4lb_flow *flow)
{
	struct l4lb_sched_server *best = NULL;
	int weight, highest = 0;
	unsigned int i;

	for (i = pool->n; i--;) {
		struct l4lb_sched_server *d = pool->server[i];

		weight = READ_ONCE(d->weight);
		if (weight > highest && atomic_read(&d->active) <= weight &&
		    !READ_ONCE(d->overloaded)) {
			best = d;
			highest = weight;
		}
	}
	return best;
}

static struct l4lb_sched_ops ovf_sched = {
	.name	= "ovf",
	.owner	= THIS_MODULE,
	.pick	= ovf_pick,
};
module_l4lb_sched(ovf_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb weighted overflow scheduler");
MODULE_VERSION("0.1.0");

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

/* Of 1 / weight, the lowest is that of the highest weight. */
static inline struct l4lb_rank ovf_rank(const struct l4lb_sched_server *d)
{
	u64 weight = l4lb_server_capacity(d);
	bool full = atomic_read(&d->active) > weight;

	return (struct l4lb_rank) { .load = 1, .weight = full ? 0 : weight };
}

static struct l4lb_sched_server *ovf_pick(const struct l4lb_pool *pool,
					  const struct l4lb_flow *flow)
{
	return l4lb_pool_lowest(pool, ovf_rank);
}

static struct l4lb_sched_ops ovf_sched = {
	.name	= "ovf",
	.owner	= THIS_MODULE,
	.pick	= ovf_pick,
	.rank	= { ovf_rank },
};
module_l4lb_sched(ovf_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb weighted overflow scheduler");
MODULE_VERSION("0.1.0");

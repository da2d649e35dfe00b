// SPDX-License-Identifier: GPL-2.0
/*
 * Shortest expected delay: the usable real server where one more connection
 * would wait least, (active + 1) / weight.
 *
 * Source: queueing theory's SED rule as in IPVS: only active connections
 * count, the quotients are compared by cross-multiplication and a tie goes to
 * the server that was added last.
 *
 * Unlike wlc it sends the first connections to the fast servers.  Wrong tool
 * for UDP, whose connections are never active: the heaviest server gets all.
 */
#include "sched.h"

static struct l4lb_sched_server *sed_pick(const struct l4lb_pool *pool,
					  const struct l4lb_flow *flow)
{
	return l4lb_pool_fastest(pool);
}

static struct l4lb_sched_ops sed_sched = {
	.name	= "sed",
	.owner	= THIS_MODULE,
	.pick	= sed_pick,
	.rank	= { l4lb_rank_fastest },
	.greedy	= L4LB_GREEDY_WEIGHTED,
};
module_l4lb_sched(sed_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb shortest expected delay scheduler");
MODULE_VERSION("0.1.0");

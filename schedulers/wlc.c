// SPDX-License-Identifier: GPL-2.0
/*
 * Weighted least connection: the usable real server with the fewest
 * connections in proportion to its weight.
 *
 * Source: "Scheduling techniques in a Linux cluster web server": the smallest
 * active/weight, default weight 1.  As in IPVS, the quotients are compared by
 * cross-multiplication, an active connection counts as much as 257 inactive
 * ones and a tie goes to the server that was added last.
 *
 * Wrong tool where a server that fails fast looks idle and attracts
 * everything.
 */
#include "sched.h"

static struct l4lb_sched_server *wlc_pick(const struct l4lb_pool *pool,
					  const struct l4lb_flow *flow)
{
	return l4lb_pool_least(pool);
}

static struct l4lb_sched_ops wlc_sched = {
	.name	= "wlc",
	.owner	= THIS_MODULE,
	.pick	= wlc_pick,
	.rank	= { l4lb_rank_least },
	.greedy	= L4LB_GREEDY_WEIGHTED,
};
module_l4lb_sched(wlc_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb weighted least connection scheduler");
MODULE_VERSION("0.1.0");

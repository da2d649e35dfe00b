// SPDX-License-Identifier: GPL-2.0
/*
 * Least connection: the usable real server with the fewest connections,
 * whatever its weight.
 *
 * Source: "Scheduling techniques in a Linux cluster web server", with a flaw by
 * design: with capacity A 4, B 16 and active connections A 4, B 5 it chooses
 * A, which is full.  As in IPVS, an active connection counts as much as 257
 * inactive ones and a tie goes to the server that was added last.
 *
 * Wrong tool for servers of unequal power (wlc), and where a server that
 * fails fast looks idle and attracts everything.
 */
#include "sched.h"

static inline struct l4lb_rank lc_rank(const struct l4lb_sched_server *d)
{
	return (struct l4lb_rank) {
		.load = l4lb_server_load(d), .weight = l4lb_server_usable(d),
	};
}

static struct l4lb_sched_server *lc_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	return l4lb_pool_lowest(pool, lc_rank);
}

static struct l4lb_sched_ops lc_sched = {
	.name	= "lc",
	.owner	= THIS_MODULE,
	.pick	= lc_pick,
	.rank	= { lc_rank },
	.greedy	= L4LB_GREEDY_EVENLY,
};
module_l4lb_sched(lc_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb least connection scheduler");
MODULE_VERSION("0.1.0");

// SPDX-License-Identifier: GPL-2.0
/*
 * Never queue: a flow goes to an idle usable real server, however slow it is;
 * if none is idle, to the one with the shortest expected delay (see sed.c).
 *
 * Source: IPVS.  A server without active connections is idle; of several idle
 * servers the one that was added last is chosen.
 *
 * Wrong tool for UDP, whose connections are never active: the server that was
 * added last gets all.
 */
#include "sched.h"

static inline struct l4lb_rank nq_rank(const struct l4lb_sched_server *d)
{
	u64 active = atomic_read(&d->active);

	return (struct l4lb_rank) {
		.load = active ? active + 1 : 0,
		.weight = l4lb_server_capacity(d),
	};
}

static struct l4lb_sched_server *nq_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	return l4lb_pool_lowest(pool, nq_rank);
}

static struct l4lb_sched_ops nq_sched = {
	.name	= "nq",
	.owner	= THIS_MODULE,
	.pick	= nq_pick,
	.rank	= { nq_rank },
	.greedy	= L4LB_GREEDY_WEIGHTED,
};
module_l4lb_sched(nq_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb never queue scheduler");
MODULE_VERSION("0.1.0");

/* SPDX-License-Identifier: GPL-2.0 */
/* The order in which a scheduler's table is filled; included by sched.h. */
#ifndef _L4LB_ORDER_H
#define _L4LB_ORDER_H

struct l4lb_pool;
struct l4lb_sched_server;

/* Values of option "order". */
enum l4lb_order {
	L4LB_ORDER_AGE,		/* of adding: as ip_vs has it */
	L4LB_ORDER_ADDRESS,	/* the same on every director with these servers */
};

struct l4lb_sched_server **l4lb_pool_order(const struct l4lb_pool *pool, u32 order);

#endif /* _L4LB_ORDER_H */

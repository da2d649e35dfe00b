/* SPDX-License-Identifier: GPL-2.0 */
/* Slow start: a new real server gets its share of new connections little by little. */
#ifndef _L4LB_RAMP_H
#define _L4LB_RAMP_H

#include <linux/atomic.h>

#include "service/server.h"

/**
 * struct l4lb_newcomer - a real server that gets less than its scheduler gives it
 * @server: the real server
 * @fair: its weight's part of all weights, a 32-bit fraction of 1
 */
struct l4lb_newcomer {
	struct l4lb_server	*server;
	u32			fair;
};

/**
 * struct l4lb_ramp - the newcomers of a pool
 * @svc: the service
 * @settled: a pool of all the others
 * @turn: which of the newcomers the next new connection may be for
 * @n: number of newcomers, at least 1
 * @newcomer: in the order of adding
 */
struct l4lb_ramp {
	const struct l4lb_service *svc;
	struct l4lb_pool	*settled;
	atomic_t		turn;
	unsigned int		n;
	struct l4lb_newcomer	newcomer[] __counted_by(n);
};

/* Configuration mutex: is it in l4lb_ramp.newcomer, not in .settled? */
static inline bool l4lb_is_newcomer(const struct l4lb_server *server)
{
	return server->ramp.phase && server->sched.weight;
}

/* Packet path: RCU, BH off. */
struct l4lb_sched_server *l4lb_ramp_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow);

/* Which part of its time has a newcomer that rises had?  Any context, RCU or
 * configuration mutex.
 */
u32 l4lb_ramp_part(const struct l4lb_service *svc,
		   const struct l4lb_server *server);

/* Connections for the weight, as l4lb_server_load() counts, times 1024: of a real server,
 * and of all that are settled and usable together; 0: there is none.
 * Configuration mutex.
 */
u64 l4lb_ramp_load(const struct l4lb_service *svc,
		   const struct l4lb_server *server);
u64 l4lb_ramp_mean(const struct l4lb_service *svc);

/* Its slow start is over, if there was one.  Configuration mutex. */
void l4lb_ramp_end(struct l4lb_server *server);

/* Configuration mutex held, may sleep.  NULL: without memory, or nobody is new.  The
 * caller fills in .settled.
 */
struct l4lb_ramp *l4lb_ramp_new(const struct l4lb_service *svc,
				const struct l4lb_pool *pool);

#endif /* _L4LB_RAMP_H */

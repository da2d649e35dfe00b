/* SPDX-License-Identifier: GPL-2.0 */
/* Slow start: a new real server gets its share of new connections little by little. */
#ifndef _L4LB_RAMP_H
#define _L4LB_RAMP_H

#include <linux/atomic.h>

#include "service/server.h"

/**
 * struct l4lb_newcomer - a real server that gets less than its scheduler gives it
 * @server: the real server
 * @fair: its weight's part of all weights
 * @due: what it is owed, of several newcomers the one that is owed most is next
 */
struct l4lb_newcomer {
	struct l4lb_server	*server;
	u32			fair;
	s64			due;
};

/**
 * struct l4lb_ramp - the newcomers of a pool
 * @svc: the service
 * @settled: a pool of all the others
 * @gate: adds @open for each new connection; an overflow opens it
 * @open: the newcomers' part of new connections
 * @tick: jiffies when @open was found
 * @n: number of newcomers, at least 1
 * @newcomer: in the order of adding
 *
 * Parts are 32-bit fractions of 1.
 */
struct l4lb_ramp {
	struct l4lb_service	*svc;
	struct l4lb_pool	*settled;
	atomic_t		gate;
	u32			open;
	u32			tick;
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
u64 l4lb_ramp_load(const struct l4lb_server *server);
u64 l4lb_ramp_mean(const struct l4lb_service *svc);

/* Configuration mutex held, may sleep.  NULL: without memory, or nobody is new, or
 * nobody is settled.  The caller fills in .settled.
 */
struct l4lb_ramp *l4lb_ramp_new(const struct l4lb_service *svc,
				const struct l4lb_pool *pool);

#endif /* _L4LB_RAMP_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * Slow start.
 *
 * A cold real server that gets its whole share at once may fail under it.  To give
 * it a small weight at first does not help with schedulers that look for the least
 * loaded server: its weight is small, but so is its load, and it gets nearly all
 * new connections.  So the choice is thinned instead.  While there are newcomers, a
 * pool has a second one of the same scheduler without them, the settled servers.
 *
 *	scheduler		a newcomer gets
 *	lc wlc sed nq		the part of all new connections that has grown to its
 *	lblc lblcr		weight's, if it is the less loaded one
 *	mh sh dh		the clients whose hash is below the part of the time:
 *				each moves once
 *	others			that part of what the scheduler gives it
 *
 * A gate is a counter to which the part is added for each new connection; when it
 * overflows, the connection may pass.  So a newcomer has in each moment what it
 * should have, to a connection, whatever the rate.
 *
 * With long connections a newcomer has few of them when its time is up.  Schedulers
 * that look for the least loaded would then give it all new ones, so it gets
 * twice its share until it has caught up.
 */
#include "service/ramp.h"

#include <linux/jhash.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "service/pool.h"

/* ---- packet path ---- */

static bool gate_opens(atomic_t *gate, u32 part)
{
	return (u32)atomic_add_return_relaxed(part, gate) < part;
}

u32 l4lb_ramp_part(const struct l4lb_service *svc,
		   const struct l4lb_server *server)
{
	u64 whole = (u64)READ_ONCE(svc->policy.ramp) * HZ;
	u64 had = jiffies - READ_ONCE(server->ramp.since);

	return had < whole ? div64_u64(had << 32, whole) : U32_MAX;
}

/* The part of all new connections that a newcomer gets. */
static u32 share(const struct l4lb_ramp *ramp, const struct l4lb_newcomer *new)
{
	u64 fair = new->fair;

	if (READ_ONCE(new->server->ramp.phase) == L4LB_RAMP_CATCHES_UP)
		return min_t(u64, 2 * fair, U32_MAX);
	return fair * l4lb_ramp_part(ramp->svc, new->server) >> 32;
}

/* The part of all newcomers.  It grows with time, so it is found anew each jiffy. */
static u32 open_part(struct l4lb_ramp *ramp)
{
	u32 now = (u32)jiffies;
	unsigned int i;
	u64 sum = 0;

	if (READ_ONCE(ramp->tick) == now)
		return READ_ONCE(ramp->open);
	for (i = 0; i < ramp->n; i++)
		sum += share(ramp, &ramp->newcomer[i]);
	sum = min_t(u64, sum, U32_MAX);
	WRITE_ONCE(ramp->open, sum);
	WRITE_ONCE(ramp->tick, now);
	return sum;
}

/* The newcomer that is owed most.  CPUs that race here owe one a little more or
 * less.
 */
static struct l4lb_sched_server *whose_turn(struct l4lb_ramp *ramp, u32 open)
{
	struct l4lb_newcomer *new, *next = &ramp->newcomer[0];
	unsigned int i;

	if (ramp->n == 1)
		return &next->server->sched;
	for (i = 0; i < ramp->n; i++) {
		new = &ramp->newcomer[i];
		WRITE_ONCE(new->due, READ_ONCE(new->due) + share(ramp, new));
		if (READ_ONCE(new->due) > READ_ONCE(next->due))
			next = new;
	}
	WRITE_ONCE(next->due, READ_ONCE(next->due) - open);
	return &next->server->sched;
}

static struct l4lb_sched_server *pick_greedy(const struct l4lb_pool *pool,
					     const struct l4lb_flow *flow)
{
	struct l4lb_ramp *ramp = pool->ramp;
	struct l4lb_sched_server *old, *new;
	u32 open = open_part(ramp);
	bool may;

	may = gate_opens(&ramp->gate, open);
	/* One that remembers its choices has to make them itself. */
	if (may && pool->state)
		return pool->ops->pick(pool, flow);
	old = pool->ops->pick(ramp->settled, flow);
	if (!may)
		return old;
	new = whose_turn(ramp, open);
	if (l4lb_server_usable(new) && !(old && l4lb_server_less(old, new)))
		return new;
	return old;
}

static bool is_new(const struct l4lb_sched_server *d)
{
	return READ_ONCE(l4lb_server_of(d)->ramp.phase) == L4LB_RAMP_RISES;
}

/* All directors with the same servers move a client at the same part of the time. */
static u32 hash_of(const struct l4lb_pool *pool, const struct l4lb_flow *flow)
{
	if (pool->ops->maps == L4LB_MAPS_DESTINATION)
		return jhash2((const u32 *)&flow->daddr,
			      sizeof(flow->daddr) / sizeof(u32), 0);
	return jhash2((const u32 *)&flow->saddr,
		      sizeof(flow->saddr) / sizeof(u32),
		      pool->flags & L4LB_SCHED_PORT ?
		      (__force u16)flow->sport : 0);
}

static bool may_pass(const struct l4lb_pool *pool, struct l4lb_sched_server *d,
		     const struct l4lb_flow *flow)
{
	struct l4lb_server *server = l4lb_server_of(d);
	u32 part = l4lb_ramp_part(pool->ramp->svc, server);

	return pool->ops->maps ? hash_of(pool, flow) <= part :
				 gate_opens(&server->ramp.gate, part);
}

/**
 * l4lb_ramp_pick() - choose a real server while there are newcomers
 * @pool: with .ramp
 * @flow: the new flow
 *
 * Context: RCU, BH off.
 * Return: the server; NULL only if the scheduler finds none among all.
 */
struct l4lb_sched_server *l4lb_ramp_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	struct l4lb_sched_server *d, *old;

	if (pool->ops->greedy)
		return pick_greedy(pool, flow) ?: pool->ops->pick(pool, flow);
	d = pool->ops->pick(pool, flow);
	if (!d || !is_new(d) || may_pass(pool, d, flow))
		return d;
	old = pool->ops->pick(pool->ramp->settled, flow);
	return old ?: d;
}

/* ---- control path ---- */

u64 l4lb_ramp_load(const struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	return div64_u64(l4lb_server_load(&server->sched) << 10,
			 max(server->sched.weight, 1));
}

u64 l4lb_ramp_mean(const struct l4lb_service *svc)
{
	const struct l4lb_server *server;
	u64 load = 0, weights = 0;

	lockdep_assert_held(&svc->ln->lock);
	list_for_each_entry(server, &svc->servers, node) {
		cond_resched();
		if (server->ramp.phase || !l4lb_server_usable(&server->sched))
			continue;
		load += l4lb_server_load(&server->sched);
		weights += server->sched.weight;
	}
	return weights ? div64_u64(load << 10, weights) : 0;
}

static u64 weights_of(const struct l4lb_pool *pool, unsigned int *n_new)
{
	unsigned int i;
	u64 sum = 0;

	*n_new = 0;
	for (i = 0; i < pool->n; i++) {
		sum += pool->server[i]->weight;
		*n_new += l4lb_is_newcomer(l4lb_server_of(pool->server[i]));
	}
	return sum;
}

struct l4lb_ramp *l4lb_ramp_new(const struct l4lb_service *svc,
				const struct l4lb_pool *pool)
{
	struct l4lb_server *server;
	struct l4lb_ramp *ramp;
	unsigned int n, i;
	u64 weights;

	lockdep_assert_held(&svc->ln->lock);
	weights = weights_of(pool, &n);
	if (!n || n == pool->n)
		return NULL;
	ramp = kvzalloc(struct_size(ramp, newcomer, n), GFP_KERNEL_ACCOUNT);
	if (!ramp)
		return NULL;
	ramp->svc = (struct l4lb_service *)svc;
	ramp->tick = (u32)jiffies - 1;
	for (i = 0; i < pool->n; i++) {
		server = l4lb_server_of(pool->server[i]);
		if (!l4lb_is_newcomer(server))
			continue;
		ramp->newcomer[ramp->n].server = server;
		ramp->newcomer[ramp->n++].fair =
			min_t(u64, div64_u64((u64)server->sched.weight << 32,
					     weights), U32_MAX);
	}
	return ramp;
}

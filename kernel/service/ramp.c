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
 *	lblc lblcr ewma		weight's, if it is the less loaded one
 *	bpf			no more than that, if the program chooses it
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

#define TOGETHER	HZ	/* those that come within it are equal */
#define KEPT		8	/* connections that a newcomer may get later */

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

/* Of the connections that may be for it, how many does it get?  It is one of @n
 * newcomers that take turns, so these are an @n-th of all.
 */
static u32 share(const struct l4lb_ramp *ramp, const struct l4lb_newcomer *new)
{
	u64 fair = (u64)new->fair * ramp->n;

	if (READ_ONCE(new->server->ramp.phase) == L4LB_RAMP_CATCHES_UP)
		return min_t(u64, 2 * fair, U32_MAX);
	return min_t(u64, fair, U32_MAX) *
	       l4lb_ramp_part(ramp->svc, new->server) >> 32;
}

static struct l4lb_newcomer *whose_turn(struct l4lb_ramp *ramp)
{
	u32 turn = ramp->n == 1 ? 0 :
		   (u32)atomic_inc_return_relaxed(&ramp->turn) % ramp->n;

	return &ramp->newcomer[turn];
}

/* Is @a less loaded than @b, as the scheduler sees it? */
static bool is_less(const struct l4lb_pool *pool,
		    const struct l4lb_sched_server *a,
		    const struct l4lb_sched_server *b)
{
	return pool->ops->greedy == L4LB_GREEDY_EVENLY ?
	       l4lb_server_load(a) < l4lb_server_load(b) :
	       l4lb_server_less(a, b);
}

static struct l4lb_sched_server *pick_greedy(const struct l4lb_pool *pool,
					     const struct l4lb_flow *flow)
{
	struct l4lb_ramp *ramp = pool->ramp;
	struct l4lb_newcomer *next = whose_turn(ramp);
	struct l4lb_sched_server *old, *new = &next->server->sched;
	bool may = gate_opens(&next->server->ramp.gate, share(ramp, next));

	/* One that remembers its choices has to make them itself. */
	if (may && pool->state)
		return pool->ops->pick(pool, flow);
	old = pool->ops->pick(ramp->settled, flow);
	if (may && l4lb_server_usable(new) && !(old && is_less(pool, old, new)))
		return new;
	return old;
}

/* Of a scheduler of which nothing is known.  What a newcomer might have got before is kept
 * for it, but not much.
 */
static struct l4lb_sched_server *pick_perhaps(const struct l4lb_pool *pool,
					      const struct l4lb_flow *flow)
{
	struct l4lb_ramp *ramp = pool->ramp;
	struct l4lb_newcomer *next = whose_turn(ramp);
	struct l4lb_server *server = next->server;
	struct l4lb_sched_server *d;

	if (gate_opens(&server->ramp.gate, share(ramp, next)))
		atomic_add_unless(&server->ramp.kept, 1, KEPT);
	d = pool->ops->pick(pool, flow);
	if (!d)
		return NULL;
	server = l4lb_server_of(d);
	if (!READ_ONCE(server->ramp.phase) ||
	    atomic_dec_if_positive(&server->ramp.kept) >= 0)
		return d;
	return pool->ops->pick(ramp->settled, flow) ?: d;
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

	if (pool->ops->greedy == L4LB_GREEDY_PERHAPS)
		return pick_perhaps(pool, flow);
	if (pool->ops->greedy)
		return pick_greedy(pool, flow) ?: pool->ops->pick(pool, flow);
	d = pool->ops->pick(pool, flow);
	if (!d || !is_new(d) || may_pass(pool, d, flow))
		return d;
	old = pool->ops->pick(pool->ramp->settled, flow);
	return old ?: d;
}

/* ---- control path ---- */

void l4lb_ramp_end(struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	if (!server->ramp.phase)
		return;
	WRITE_ONCE(server->ramp.phase, L4LB_RAMP_NONE);
	server->ramp.svc->n_ramping--;
	server->ramp.svc = NULL;
	list_del_init(&server->ramp.node);
}

/* The weight as the scheduler of @svc takes it. */
static u32 weight_of(const struct l4lb_sched_inst *inst,
		     const struct l4lb_sched_server *d)
{
	return inst && inst->ops->greedy == L4LB_GREEDY_EVENLY ? !!d->weight :
								 d->weight;
}

u64 l4lb_ramp_load(const struct l4lb_service *svc,
		   const struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	return div64_u64(l4lb_server_load(&server->sched) << 10,
			 max(weight_of(svc->inst, &server->sched), 1U));
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
		weights += weight_of(svc->inst, &server->sched);
	}
	return weights ? div64_u64(load << 10, weights) : 0;
}

/* If all servers that have a weight are new, those that came first are so no longer:
 * somebody must have the load.
 */
static void promote(const struct l4lb_pool *pool)
{
	struct l4lb_server *server, *first = NULL;
	unsigned long since;
	unsigned int i;

	for (i = 0; i < pool->n; i++) {
		server = l4lb_server_of(pool->server[i]);
		if (server->sched.weight && !server->ramp.phase)
			return;
		if (l4lb_is_newcomer(server) &&
		    (!first || time_before(server->ramp.since, first->ramp.since)))
			first = server;
	}
	since = first ? first->ramp.since : 0;
	for (i = 0; i < pool->n; i++) {
		server = l4lb_server_of(pool->server[i]);
		if (l4lb_is_newcomer(server) &&
		    time_before(server->ramp.since, since + TOGETHER))
			l4lb_ramp_end(server);
	}
}

static u64 weights_of(const struct l4lb_pool *pool, unsigned int *n_new)
{
	unsigned int i;
	u64 sum = 0;

	*n_new = 0;
	for (i = 0; i < pool->n; i++) {
		sum += weight_of(pool->inst, pool->server[i]);
		*n_new += l4lb_is_newcomer(l4lb_server_of(pool->server[i]));
	}
	return sum;
}

struct l4lb_ramp *l4lb_ramp_new(const struct l4lb_service *svc,
				const struct l4lb_pool *pool)
{
	struct l4lb_newcomer *new;
	struct l4lb_server *server;
	struct l4lb_ramp *ramp;
	unsigned int n, i;
	u64 weights, own;

	lockdep_assert_held(&svc->ln->lock);
	promote(pool);
	weights = weights_of(pool, &n);
	if (!n)
		return NULL;
	ramp = kvzalloc(struct_size(ramp, newcomer, n), GFP_KERNEL_ACCOUNT);
	if (!ramp)
		return NULL;
	ramp->svc = svc;
	ramp->n = n;
	new = ramp->newcomer;
	for (i = 0; i < pool->n; i++) {
		server = l4lb_server_of(pool->server[i]);
		if (!l4lb_is_newcomer(server))
			continue;
		own = weight_of(pool->inst, pool->server[i]);
		new->server = server;
		new++->fair = min_t(u64, div64_u64(own << 32, weights), U32_MAX);
	}
	return ramp;
}

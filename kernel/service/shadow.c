// SPDX-License-Identifier: GPL-2.0
/*
 * Shadows: what would another scheduler do with these connections?
 *
 * After each choice of a service's scheduler the shadow is asked about the same flow.
 * Its answer has no effect but on its own counters: it chooses from ghosts, whose loads
 * are the connections that it would have given them itself.  With the real servers' own
 * loads, which somebody else's choices have made, a scheduler that looks at loads would
 * only be asked how it goes on from there.
 *
 *	service --pool----> server 0   server 1   ...
 *	   |                   | ghost    | ghost
 *	   +--shadow--pool--> ghost 0    ghost 1  ...	in the same order
 *	                        ^
 *	connection -------------+	counts there while it lives
 *
 * A ghost is held by its real server and by connections, whoever is last.  So a shadow
 * ends without a look at connections, which go on counting for ghosts that nobody reads.
 * A real server that is removed keeps its ghost, and has its loads again when it comes
 * back under the same shadow.
 *
 * The shadow is asked when a connection, a template or a packet of a one-packet service
 * begins.  Connections of a template count where the shadow would have put its client.
 * Those that began before the shadow, or on another director, have no ghost.  A shadow
 * knows no slow start.
 *
 * It follows each change of its service's pool.  If there is no memory for that, or
 * the scheduler cannot take it, the shadow ends, and listeners are told.
 */
#include "service/shadow.h"

#include <linux/jiffies.h>
#include <linux/netlink.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "service/event.h"
#include "service/ghost.h"
#include "service/latency.h"
#include "service/registry.h"

#define BREATH	256	/* servers between two looks for other tasks */

/* ---- packet path ---- */

static void count(const struct l4lb_shadow *shadow, enum l4lb_shadow_count what)
{
	this_cpu_inc(shadow->counts[what]);
}

struct l4lb_server *l4lb_shadow_choose(const struct l4lb_server *server,
				       const struct l4lb_flow *flow)
{
	const struct l4lb_service *svc = rcu_dereference(server->svc);
	const struct l4lb_shadow *shadow = svc ? rcu_dereference(svc->shadow) : NULL;
	const struct l4lb_pool *pool;
	struct l4lb_sched_server *d;
	struct l4lb_server *ghost;

	if (!shadow)
		return NULL;
	pool = rcu_dereference(shadow->pool);
	d = pool->ops->pick(pool, flow);
	count(shadow, L4LB_SHADOW_SEEN);
	if (!d) {
		count(shadow, L4LB_SHADOW_REFUSED);
		return NULL;
	}
	ghost = l4lb_server_of(d);
	if (ghost == rcu_access_pointer(server->ghost))
		count(shadow, L4LB_SHADOW_AGREED);
	/* Its shadow may just have ended. */
	return refcount_inc_not_zero(&ghost->refs) ? ghost : NULL;
}

/* @what: CONN: it would get a connection; IN: its real server did. */
static void count_ghost(struct l4lb_server *ghost, enum l4lb_stats_event what)
{
	if (l4lb_stats_begin(&ghost->stats, what, 0))
		l4lb_stats_count(&ghost->stats, what, 0);
}

void l4lb_shadow_got(const struct l4lb_server *server, struct l4lb_server *ghost)
{
	struct l4lb_server *own = rcu_dereference(server->ghost);

	/* A template may have its ghost from the shadow before. */
	if (own && ghost && own->service_id != ghost->service_id)
		return;
	if (own)
		count_ghost(own, L4LB_STATS_IN);
	if (ghost)
		count_ghost(ghost, L4LB_STATS_CONN);
}

void l4lb_shadow_pass(const struct l4lb_server *server, const struct l4lb_flow *flow)
{
	struct l4lb_server *ghost = l4lb_shadow_choose(server, flow);

	l4lb_shadow_got(server, ghost);
	if (ghost)
		l4lb_server_put(ghost);
}

/* ---- pools of ghosts ---- */

static struct l4lb_server *ghost_of(const struct l4lb_server *server)
{
	return rcu_dereference_protected(server->ghost,
					 lockdep_is_held(&server->ln->lock));
}

/* The one that it has from this shadow, perhaps since before it was removed; or a new
 * one.
 */
static struct l4lb_server *obtain(const struct l4lb_shadow *shadow,
				  const struct l4lb_server *server)
{
	struct l4lb_server *ghost = ghost_of(server);

	if (ghost && ghost->service_id == shadow->id) {
		/* Changes of it are not told to ghosts: only tables are made of it. */
		WRITE_ONCE(ghost->sched.last_weight, server->sched.last_weight);
		return ghost;
	}
	ghost = l4lb_ghost_create(server);
	if (ghost)
		ghost->service_id = shadow->id;
	return ghost;
}

/* Puts new ghosts of the first @n servers, which nobody else has. */
static void put_new(const struct l4lb_pool *servers, const struct l4lb_pool *ghosts,
		    unsigned int n)
{
	struct l4lb_server *ghost;
	unsigned int i;

	for (i = 0; i < n; i++) {
		ghost = l4lb_server_of(ghosts->server[i]);
		if (ghost_of(l4lb_server_of(servers->server[i])) != ghost)
			l4lb_server_put(ghost);
		if (i % BREATH == 0)
			cond_resched();
	}
}

/* A pool with a ghost for each of @servers, and the table of the shadow's scheduler. */
static struct l4lb_pool *make_pool(const struct l4lb_shadow *shadow,
				   const struct l4lb_service *svc,
				   const struct l4lb_pool *servers)
{
	struct l4lb_pool *pool = l4lb_pool_new(svc, servers->n);
	struct l4lb_server *ghost;
	unsigned int i;
	int err;

	if (!pool)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < pool->n; i++) {
		ghost = obtain(shadow, l4lb_server_of(servers->server[i]));
		err = ghost ? 0 : -ENOMEM;
		if (err)
			goto err;
		l4lb_pool_put(pool, i, ghost);
		if (i % BREATH == 0)
			cond_resched();
	}
	pool->flags = servers->flags;
	err = l4lb_pool_build_ghosts(pool, shadow->inst,
				     rcu_dereference_protected(shadow->pool,
							       lockdep_is_held(&svc->ln->lock)));
	if (!err)
		return pool;
err:
	put_new(servers, pool, i);
	l4lb_pool_free(pool);
	return ERR_PTR(err);
}

/* Each of @servers has its ghost from now on.  Those before belong to shadows that
 * packets do not find any more.
 */
static void haunt(const struct l4lb_pool *servers, const struct l4lb_pool *ghosts)
{
	struct l4lb_server *server, *ghost, *old;
	unsigned int i;

	for (i = 0; i < servers->n; i++) {
		server = l4lb_server_of(servers->server[i]);
		ghost = l4lb_server_of(ghosts->server[i]);
		old = ghost_of(server);
		WRITE_ONCE(ghost->available, true);
		if (old != ghost) {
			rcu_assign_pointer(server->ghost, ghost);
			if (old)
				l4lb_server_put(old);
		}
		l4lb_latency_tell_ghost(server);
		if (i % BREATH == 0)
			cond_resched();
	}
}

/* ---- life ---- */

static void shadow_free(struct l4lb_shadow *shadow)
{
	free_percpu(shadow->counts);
	kfree(shadow);
}

static void shadow_free_work(struct work_struct *work)
{
	shadow_free(container_of(to_rcu_work(work), struct l4lb_shadow, work));
}

static struct l4lb_shadow *shadow_alloc(const struct l4lb_service *svc,
					const struct l4lb_sched_ops *ops)
{
	static atomic64_t last_id = ATOMIC64_INIT(0);
	struct l4lb_shadow *shadow = kzalloc(sizeof(*shadow), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!shadow)
		return ERR_PTR(-ENOMEM);
	shadow->counts = __alloc_percpu(sizeof(u64) * L4LB_SHADOW_COUNTS, sizeof(u64));
	if (!shadow->counts)
		goto err;
	shadow->inst = l4lb_inst_create(svc->ln, ops);
	if (IS_ERR(shadow->inst)) {
		err = PTR_ERR(shadow->inst);
		goto err;
	}
	shadow->ops = ops;
	shadow->since = get_jiffies_64();
	shadow->id = atomic64_inc_return(&last_id);
	INIT_RCU_WORK(&shadow->work, shadow_free_work);
	return shadow;

err:
	shadow_free(shadow);
	return ERR_PTR(err);
}

static void say_failed(int err, struct netlink_ext_ack *extack)
{
	if (err == -ENOMEM)
		NL_SET_ERR_MSG(extack, "no memory for the shadow");
	else
		NL_SET_ERR_MSG(extack,
			       "the shadow's scheduler cannot work for this service");
}

struct l4lb_shadow *l4lb_shadow_create(const struct l4lb_service *svc,
				       const struct l4lb_sched_ops *ops,
				       const struct l4lb_pool *servers,
				       struct netlink_ext_ack *extack)
{
	struct l4lb_shadow *shadow;
	struct l4lb_pool *pool;

	lockdep_assert_held(&svc->ln->lock);
	if (!ops)
		return NULL;
	shadow = shadow_alloc(svc, ops);
	if (IS_ERR(shadow)) {
		say_failed(PTR_ERR(shadow), extack);
		return shadow;
	}
	l4lb_ghost_options(shadow->inst, servers->inst);
	pool = make_pool(shadow, svc, servers);
	if (!IS_ERR(pool)) {
		rcu_assign_pointer(shadow->pool, pool);
		return shadow;
	}
	say_failed(PTR_ERR(pool), extack);
	l4lb_inst_put(shadow->inst);
	shadow_free(shadow);
	return ERR_CAST(pool);
}

/* No packet has seen it, and no real server has its ghosts. */
void l4lb_shadow_discard(struct l4lb_shadow *shadow)
{
	struct l4lb_pool *pool;
	unsigned int i;

	if (IS_ERR_OR_NULL(shadow))
		return;
	pool = rcu_dereference_protected(shadow->pool, true);	/* see above */
	for (i = 0; i < pool->n; i++) {
		l4lb_server_put(l4lb_server_of(pool->server[i]));
		if (i % BREATH == 0)
			cond_resched();
	}
	l4lb_pool_free(pool);
	l4lb_inst_put(shadow->inst);
	shadow_free(shadow);
}

static struct l4lb_pool *pool_of(const struct l4lb_shadow *shadow,
				 const struct l4lb_service *svc)
{
	return rcu_dereference_protected(shadow->pool,
					 lockdep_is_held(&svc->ln->lock));
}

/* Packets that still have it choose from ghosts which are there until they are done.
 * Those of real servers that were removed stay with them.
 */
static void end(struct l4lb_service *svc)
{
	struct l4lb_shadow *shadow = l4lb_shadow_current(svc);
	struct l4lb_server *server, *ghost;

	WRITE_ONCE(svc->uses, svc->uses & ~L4LB_USE_SHADOWED);
	RCU_INIT_POINTER(svc->shadow, NULL);
	/* Before the ghosts may go, which it refers to. */
	l4lb_pool_retire(pool_of(shadow, svc));
	list_for_each_entry(server, &svc->servers, node) {
		ghost = ghost_of(server);
		RCU_INIT_POINTER(server->ghost, NULL);
		if (ghost)
			l4lb_server_put(ghost);
		cond_resched();
	}
	l4lb_inst_put(shadow->inst);
	/* Last: now its module may be unloaded, see l4lb_sched_unregister(). */
	l4lb_sched_put(shadow->ops);
	queue_rcu_work(l4lb_wq, &shadow->work);
}

void l4lb_shadow_set(struct l4lb_service *svc, struct l4lb_shadow *shadow)
{
	struct l4lb_pool *pool;

	lockdep_assert_held(&svc->ln->lock);
	svc->ln->generation++;
	if (l4lb_shadow_current(svc))
		end(svc);
	if (!shadow)
		return;
	pool = pool_of(shadow, svc);
	/* A batch sets options after create(), but none that a table is made of. */
	l4lb_ghost_options(shadow->inst, svc->inst);
	haunt(l4lb_pool_current(svc), pool);
	l4lb_tournament_begin(pool);
	rcu_assign_pointer(svc->shadow, shadow);
	/* New connections that need more memory for it may come now. */
	WRITE_ONCE(svc->uses, svc->uses | L4LB_USE_SHADOWED);
}

static void fade(struct l4lb_service *svc)
{
	pr_warn("shadow %s of a service could not follow a change, and has ended\n",
		l4lb_shadow_sched(svc)->name);
	l4lb_shadow_set(svc, NULL);
	l4lb_event_service(L4LB_EVENT_SHADOW_LOST, svc);
}

void l4lb_shadow_follow(struct l4lb_service *svc)
{
	struct l4lb_shadow *shadow = l4lb_shadow_current(svc);
	struct l4lb_pool *pool, *old, *servers;

	lockdep_assert_held(&svc->ln->lock);
	if (likely(!shadow))
		return;
	servers = l4lb_pool_current(svc);
	l4lb_ghost_options(shadow->inst, servers->inst);
	pool = make_pool(shadow, svc, servers);
	if (IS_ERR(pool)) {
		fade(svc);
		return;
	}
	old = pool_of(shadow, svc);
	haunt(servers, pool);
	rcu_assign_pointer(shadow->pool, pool);
	l4lb_pool_retire(old);
	l4lb_tournament_begin(pool);
}

void l4lb_shadow_reweigh(struct l4lb_service *svc)
{
	const struct l4lb_sched_ops *ops = l4lb_shadow_sched(svc);

	/* Otherwise the weight is in the ghost, and picks have seen it. */
	if (ops && ops->build)
		l4lb_shadow_follow(svc);
}

struct l4lb_sched_inst *l4lb_shadow_inst(const struct l4lb_service *svc)
{
	const struct l4lb_shadow *shadow = l4lb_shadow_current(svc);

	return shadow ? shadow->inst : NULL;
}

void l4lb_shadow_options(struct l4lb_service *svc)
{
	const struct l4lb_sched_inst *inst = l4lb_shadow_inst(svc);

	if (!inst)
		return;
	l4lb_ghost_options(l4lb_shadow_inst(svc), svc->inst);
	/* Also with the same values: it may have stopped at something. */
	if (inst->ops == l4lb_inst_ops(svc->inst) && inst->ops->changed)
		inst->ops->changed(inst->state);
}

/* ---- counters ---- */

u64 l4lb_shadow_count(const struct l4lb_shadow *shadow, enum l4lb_shadow_count what)
{
	return l4lb_percpu_sum(shadow->counts, what) - shadow->zero[what];
}

void l4lb_shadow_zero(struct l4lb_service *svc)
{
	struct l4lb_shadow *shadow = l4lb_shadow_current(svc);
	const struct l4lb_pool *pool;
	unsigned int i;

	lockdep_assert_held(&svc->ln->lock);
	if (!shadow)
		return;
	for (i = 0; i < L4LB_SHADOW_COUNTS; i++)
		shadow->zero[i] = l4lb_percpu_sum(shadow->counts, i);
	shadow->since = get_jiffies_64();
	pool = pool_of(shadow, svc);
	for (i = 0; i < pool->n; i++) {
		l4lb_stats_zero(&l4lb_server_of(pool->server[i])->stats);
		if (i % BREATH == 0)
			cond_resched();
	}
}

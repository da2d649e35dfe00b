// SPDX-License-Identifier: GPL-2.0
/*
 * Scheduler instances and pools.
 *
 * A pool is an immutable generation of a service's real servers.  A change
 * builds the next one, publishes it, and hands the old one to l4lb_wq, which
 * frees it a grace period later in process context, where schedulers may sleep.
 *
 *	service --inst--> instance (ops, state)   one per bound scheduler
 *	   |                  ^
 *	   +--pool--> pool ---+   one per change; old ones die asynchronously
 *	                |
 *	                +--> real servers (no references)
 *
 * A removed real server outlives the pools that it was in: it is not in the next
 * one, and stays in the trash for much longer than a grace period.  If no next
 * one could be built, it is stuck: in the trash until there is one.
 *
 * Nothing that runs on l4lb_wq touches the service or the namespace: both may
 * be gone before their pools are.
 */
#include "service/pool.h"
#include "service/ramp.h"
#include "service/sched_default.h"
#include "service/server.h"
#include "service/shadow.h"
#include "service/trace.h"

#include <linux/mm.h>
#include <linux/slab.h>

struct l4lb_sched_inst *l4lb_inst_create(struct l4lb_net *ln,
					 const struct l4lb_sched_ops *ops)
{
	struct l4lb_sched_inst *inst;
	void *state = NULL;
	unsigned int i;

	if (!ops)
		return NULL;
	inst = kmalloc(struct_size(inst, option, ops->n_options), GFP_KERNEL_ACCOUNT);
	if (!inst)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < ops->n_options; i++)
		inst->option[i] = l4lb_sched_default(ln, ops, i);
	if (ops->init) {
		state = ops->init(inst->option);
		if (IS_ERR(state)) {
			kfree(inst);
			return state;
		}
	}
	inst->ops = ops;
	inst->state = state;
	inst->set = 0;
	inst->file = NULL;
	memset(&inst->key, 0, sizeof(inst->key));
	refcount_set(&inst->refs, 1);
	return inst;
}

struct l4lb_sched_file *l4lb_file_get(struct l4lb_sched_file *file)
{
	if (file)
		refcount_inc(&file->refs);
	return file;
}

void l4lb_file_put(struct l4lb_sched_file *file)
{
	if (!file || !refcount_dec_and_test(&file->refs))
		return;
	file->ops->close(file->data);
	kfree(file);
}

void l4lb_inst_put(struct l4lb_sched_inst *inst)
{
	if (!inst || !refcount_dec_and_test(&inst->refs))
		return;
	l4lb_file_put(inst->file);
	if (inst->ops->exit)
		inst->ops->exit(inst->state);
	kfree_sensitive(inst);
}

/* Frees everything but the scheduler's table. */
static void pool_release(struct l4lb_pool *pool)
{
	if (pool->ramp) {
		l4lb_pool_free(pool->ramp->settled);
		kvfree(pool->ramp);
	}
	l4lb_file_put(pool->file);
	l4lb_inst_put(pool->inst);
	l4lb_tournament_put(pool->tournament);
	kvfree(pool);
}

void l4lb_pool_free(struct l4lb_pool *pool)
{
	if (pool->ops && pool->ops->free)
		pool->ops->free(pool);
	pool_release(pool);
}

static void pool_free_work(struct work_struct *work)
{
	l4lb_pool_free(container_of(to_rcu_work(work), struct l4lb_pool, work));
}

struct l4lb_pool *l4lb_pool_new(const struct l4lb_service *svc, unsigned int n)
{
	struct l4lb_pool *pool;

	pool = kvmalloc(struct_size(pool, server, n), GFP_KERNEL_ACCOUNT);
	if (!pool)
		return NULL;
	memset(pool, 0, sizeof(*pool));
	pool->n = n;
	pool->af = svc->key.af;
	INIT_RCU_WORK(&pool->work, pool_free_work);
	return pool;
}

void l4lb_pool_put(struct l4lb_pool *pool, unsigned int i,
		   struct l4lb_server *server)
{
	pool->server[i] = &server->sched;
}

/* The pool whose tournament is the service's: newcomers have no seat. */
static struct l4lb_pool *ranked(struct l4lb_pool *pool)
{
	return pool->ramp && pool->ops->greedy ? pool->ramp->settled : pool;
}

/* @old: the previous pool that this one continues from, or NULL.  Return: 0, or a
 * negative errno: then @pool has no table to be freed.
 */
static int build_table(struct l4lb_pool *pool, struct l4lb_sched_inst *inst,
		       const struct l4lb_pool *old)
{
	int err;

	refcount_inc(&inst->refs);
	pool->inst = inst;
	pool->ops = inst->ops;
	pool->state = inst->state;
	pool->option = inst->option;
	pool->key = &inst->key;
	pool->file = l4lb_file_get(inst->file);
	err = pool->ops->build ? pool->ops->build(pool, old) : 0;
	if (!err)
		return 0;
	pool->ops = NULL;
	/* The caller's ERR_PTR() of anything else would look like a pool. */
	return IS_ERR_VALUE((long)err) ? err : -EINVAL;
}

/* The same, but after a failure @pool is freed. */
static int build(struct l4lb_pool *pool, struct l4lb_sched_inst *inst,
		 const struct l4lb_pool *old)
{
	int err = build_table(pool, inst, old);

	if (err)
		pool_release(pool);
	return err;
}

int l4lb_pool_build_ghosts(struct l4lb_pool *pool, struct l4lb_sched_inst *inst,
			   const struct l4lb_pool *old)
{
	int err = build_table(pool, inst, old);

	if (!err)
		pool->tournament = l4lb_tournament_create(pool);
	return err;
}

/* Gives @pool a second one without its newcomers.  Without memory they get their
 * whole share at once.
 */
static void build_settled(const struct l4lb_service *svc, struct l4lb_pool *pool,
			  const struct l4lb_pool *old)
{
	struct l4lb_ramp *ramp = l4lb_ramp_new(svc, pool);
	struct l4lb_pool *settled;
	unsigned int i, n = 0;

	if (!ramp)
		return;
	settled = l4lb_pool_new(svc, pool->n - ramp->n);
	if (!settled)
		goto err;
	for (i = 0; i < pool->n; i++)
		if (!l4lb_is_newcomer(l4lb_server_of(pool->server[i])))
			settled->server[n++] = pool->server[i];
	settled->flags = pool->flags;
	if (build(settled, pool->inst, old && old->ramp ? old->ramp->settled : old))
		goto err;
	ramp->settled = settled;
	pool->ramp = ramp;
	return;

err:
	kvfree(ramp);
}

/**
 * l4lb_pool_build() - let a scheduler build its table for a filled pool
 * @svc: the service the pool is for
 * @pool: not yet published
 * @inst: the instance, NULL for scheduler "none"; the service's present one
 *	continues from its present pool
 * @flags: of the service
 *
 * Context: configuration mutex held, may sleep.
 * Return: 0, or a negative errno with @pool freed.
 */
int l4lb_pool_build(const struct l4lb_service *svc, struct l4lb_pool *pool,
		    struct l4lb_sched_inst *inst, u32 flags)
{
	const struct l4lb_pool *old = l4lb_pool_current(svc);
	struct l4lb_pool *seated;
	int err;

	pool->flags = flags;
	if (!inst)
		return 0;
	if (old && old->inst != inst)
		old = NULL;
	err = build(pool, inst, old);
	if (err)
		return err;
	if (svc->n_ramping)
		build_settled(svc, pool, old);
	seated = ranked(pool);
	if (seated != pool) {
		l4lb_tournament_put(pool->tournament);
		pool->tournament = NULL;
	}
	if (!seated->tournament)
		seated->tournament = l4lb_tournament_create(seated);
	return 0;
}

struct l4lb_pool *l4lb_pool_create(const struct l4lb_service *svc,
				   struct l4lb_sched_inst *inst, u32 flags)
{
	struct l4lb_pool *pool = l4lb_pool_new(svc, svc->n_servers);
	struct l4lb_server *server;
	unsigned int i = 0;
	int err;

	if (!pool)
		return ERR_PTR(-ENOMEM);
	list_for_each_entry(server, &svc->servers, node)
		l4lb_pool_put(pool, i++, server);
	err = l4lb_pool_build(svc, pool, inst, flags);
	return err ? ERR_PTR(err) : pool;
}

void l4lb_pool_publish(struct l4lb_service *svc, struct l4lb_pool *pool)
{
	struct l4lb_pool *old = l4lb_pool_current(svc);
	struct l4lb_tournament *t = ranked(pool)->tournament;

	svc->ln->generation++;
	rcu_assign_pointer(svc->pool, pool);
	trace_l4lb_pool(svc, pool->n);
	l4lb_service_look(svc);
	l4lb_server_unstick(svc);
	if (old && ranked(old)->tournament != t)
		l4lb_tournament_leave(ranked(old)->tournament);
	if (old)
		queue_rcu_work(l4lb_wq, &old->work);
	l4lb_tournament_begin(ranked(pool));
	l4lb_shadow_follow(svc);
}

void l4lb_pool_retire(struct l4lb_pool *pool)
{
	l4lb_tournament_leave(ranked(pool)->tournament);
	queue_rcu_work(l4lb_wq, &pool->work);
}

/* The present pool with the change that was just made to the list of servers:
 * the newest is not in it yet, or @gone still is.  To copy the array is quick;
 * to walk the list is not, where there are thousands.
 */
static struct l4lb_pool *pool_next(const struct l4lb_service *svc,
				   const struct l4lb_server *gone)
{
	const struct l4lb_pool *old = l4lb_pool_current(svc);
	struct l4lb_pool *pool = l4lb_pool_new(svc, svc->n_servers);
	unsigned int at = 0;

	if (!pool)
		return NULL;
	if (old->inst == svc->inst)
		pool->tournament = l4lb_tournament_share(old, svc->n_servers);
	if (!gone) {
		memcpy(pool->server, old->server, flex_array_size(old, server,
								  old->n));
		l4lb_pool_put(pool, old->n, list_last_entry(&svc->servers,
							    struct l4lb_server,
							    node));
		return pool;
	}
	while (old->server[at] != &gone->sched)
		at++;
	memcpy(pool->server, old->server, flex_array_size(old, server, at));
	memcpy(pool->server + at, old->server + at + 1,
	       flex_array_size(old, server, pool->n - at));
	return pool;
}

static int rebuild(struct l4lb_service *svc, struct l4lb_pool *pool)
{
	int err;

	if (!pool)
		return -ENOMEM;
	err = l4lb_pool_build(svc, pool, svc->inst, svc->flags);
	if (!err)
		l4lb_pool_publish(svc, pool);
	return err;
}

int l4lb_service_rebuild(struct l4lb_service *svc)
{
	struct l4lb_pool *pool = l4lb_pool_create(svc, svc->inst, svc->flags);

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	l4lb_pool_publish(svc, pool);
	return 0;
}

int l4lb_service_grow(struct l4lb_service *svc)
{
	struct l4lb_pool *pool;
	int err;

	lockdep_assert_held(&svc->ln->lock);
	if (svc->stuck)
		return l4lb_service_rebuild(svc);
	pool = pool_next(svc, NULL);
	err = rebuild(svc, pool);
	if (!err)
		l4lb_tournament_join(pool->tournament,
				     pool->server[pool->n - 1]);
	return err;
}

int l4lb_service_shrink(struct l4lb_service *svc, struct l4lb_server *gone)
{
	int err;

	lockdep_assert_held(&svc->ln->lock);
	if (svc->stuck)
		err = l4lb_service_rebuild(svc);
	else
		err = rebuild(svc, pool_next(svc, gone));
	if (!err) {
		l4lb_tournament_quit(l4lb_pool_current(svc)->tournament,
				     &gone->sched);
	} else {
		gone->stuck = true;
		svc->stuck = true;
	}
	return err;
}

int l4lb_service_reweigh(struct l4lb_service *svc)
{
	const struct l4lb_sched_ops *ops = l4lb_inst_ops(svc->inst);

	lockdep_assert_held(&svc->ln->lock);
	if (svc->stuck || svc->n_ramping || (ops && ops->build))
		return l4lb_service_rebuild(svc);
	/* Weights are in the servers: packets have seen the new one. */
	svc->ln->generation++;
	l4lb_service_look(svc);
	l4lb_shadow_reweigh(svc);
	return 0;
}

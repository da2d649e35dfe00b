// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual services and their pools.
 *
 * Everything the packet path reads of a service is either a single word or
 * the pool: an immutable generation of its real servers.  A change builds the
 * next generation, publishes it, and hands the one before to l4lb_wq, which
 * frees it a grace period later in process context, where schedulers may
 * sleep.
 *
 *	service --inst--> instance (ops, state)   one per bound scheduler
 *	   |                  ^
 *	   +--pool--> pool ---+   one per change; old ones die asynchronously
 *	                |
 *	                +--> real servers (one reference each)
 *
 * Nothing that runs on l4lb_wq touches the service or the namespace: both may
 * be gone before their pools are.
 */
#include "service.h"
#include "conn.h"
#include "control.h"
#include "defence.h"
#include "dest.h"
#include "fast.h"
#include "guard.h"
#include "hook.h"

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>

/* A scheduler at work in a service; each of its pools holds a reference. */
struct l4lb_sched_inst {
	const struct l4lb_sched_ops	*ops;
	void				*state;
	refcount_t			refs;
	unsigned long			set;	/* bits of options */
	u32				option[];	/* as in ops->options */
};

static const struct rhashtable_params svc_params = {
	.key_len	= sizeof(struct l4lb_svc_key),
	.key_offset	= offsetof(struct l4lb_service, key),
	.head_offset	= offsetof(struct l4lb_service, node),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

/* The key is hashed and compared as bytes: it must not have holes. */
static_assert(sizeof(struct l4lb_svc_key) ==
	      sizeof(union nf_inet_addr) + sizeof(u32) + 4 * sizeof(u16));

/* ---- instances and pools ---- */

/* Returns an instance with one reference; NULL for scheduler "none". */
static struct l4lb_sched_inst *inst_create(const struct l4lb_net *ln,
					   const struct l4lb_sched_ops *ops)
{
	struct l4lb_sched_inst *inst;
	void *state = NULL;
	unsigned int i;

	if (!ops)
		return NULL;
	inst = kmalloc(struct_size(inst, option, ops->n_options), GFP_KERNEL);
	if (!inst)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < ops->n_options; i++)
		inst->option[i] = l4lb_sysctl_sched_value(ln, ops, i);
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
	refcount_set(&inst->refs, 1);
	return inst;
}

static void inst_put(struct l4lb_sched_inst *inst)
{
	if (!inst || !refcount_dec_and_test(&inst->refs))
		return;
	if (inst->ops->exit)
		inst->ops->exit(inst->state);
	kfree(inst);
}

static const struct l4lb_sched_ops *
inst_ops(const struct l4lb_sched_inst *inst)
{
	return inst ? inst->ops : NULL;
}

/* Everything but the scheduler's table. */
static void pool_release(struct l4lb_pool *pool)
{
	unsigned int i;

	for (i = 0; i < pool->n; i++)
		l4lb_real_put(l4lb_real(pool->dest[i]));
	inst_put(pool->inst);
	kvfree(pool);
}

static void pool_free(struct l4lb_pool *pool)
{
	if (pool->ops && pool->ops->free)
		pool->ops->free(pool);
	pool_release(pool);
}

static void pool_free_work(struct work_struct *work)
{
	pool_free(container_of(to_rcu_work(work), struct l4lb_pool, work));
}

static struct l4lb_pool *pool_current(const struct l4lb_service *svc)
{
	return rcu_dereference_protected(svc->pool,
					 lockdep_is_held(&svc->ln->lock));
}

/* The next generation of @svc under @inst, not yet published. */
static struct l4lb_pool *pool_create(struct l4lb_service *svc,
				     struct l4lb_sched_inst *inst, u32 flags)
{
	const struct l4lb_pool *old = pool_current(svc);
	struct l4lb_pool *pool;
	struct l4lb_real *real;
	unsigned int i = 0;
	int err;

	pool = kvzalloc(struct_size(pool, dest, svc->n_dests), GFP_KERNEL);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	pool->n = svc->n_dests;
	pool->flags = flags;
	pool->af = svc->key.af;
	INIT_RCU_WORK(&pool->work, pool_free_work);
	list_for_each_entry(real, &svc->dests, node) {
		l4lb_real_hold(real);
		pool->dest[i++] = &real->dest;
	}
	if (!inst)
		return pool;

	refcount_inc(&inst->refs);
	pool->inst = inst;
	pool->ops = inst->ops;
	pool->state = inst->state;
	pool->option = inst->option;
	if (!pool->ops->build)
		return pool;
	err = pool->ops->build(pool, old && old->inst == inst ? old : NULL);
	if (err) {
		pool_release(pool);
		/* Anything but an errno would be taken for a pool. */
		return ERR_PTR(IS_ERR_VALUE((long)err) ? err : -EINVAL);
	}
	return pool;
}

static void pool_publish(struct l4lb_service *svc, struct l4lb_pool *pool)
{
	struct l4lb_pool *old = pool_current(svc);

	rcu_assign_pointer(svc->pool, pool);
	if (old)
		queue_rcu_work(l4lb_wq, &old->work);
}

int l4lb_service_rebuild(struct l4lb_service *svc)
{
	struct l4lb_pool *pool;

	lockdep_assert_held(&svc->ln->lock);
	pool = pool_create(svc, svc->inst, svc->flags);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	pool_publish(svc, pool);
	return 0;
}

/* ---- packet path ---- */

/**
 * l4lb_service_lookup() - the service a packet is for
 * @ln: namespace
 * @fwmark: of the packet; wins over its addresses
 * @flow: of the packet, client to VIP
 *
 * Return: the service, valid in the caller's RCU section, or NULL.
 */
struct l4lb_service *l4lb_service_lookup(struct l4lb_net *ln, u32 fwmark,
					 const struct l4lb_flow *flow)
{
	struct l4lb_svc_key key = { .af = flow->af };
	struct l4lb_service *svc;

	if (fwmark && READ_ONCE(ln->n_fwmark)) {
		key.fwmark = fwmark;
		svc = rhashtable_lookup(&ln->svc_table, &key, svc_params);
		if (svc)
			return svc;
		key.fwmark = 0;
	}
	key.addr = flow->daddr;
	key.protocol = flow->proto;
	key.port = flow->dport;
	svc = rhashtable_lookup(&ln->svc_table, &key, svc_params);
	if (svc || !READ_ONCE(ln->n_any_port))
		return svc;
	key.port = 0;
	return rhashtable_lookup(&ln->svc_table, &key, svc_params);
}

/* The real server for a new flow, valid in the caller's RCU section, or NULL
 * if none may take it.  BH off.
 */
struct l4lb_real *l4lb_service_pick(struct l4lb_service *svc,
				    const struct l4lb_flow *flow)
{
	const struct l4lb_pool *pool = rcu_dereference(svc->pool);
	struct l4lb_dest *d;

	if (!pool->ops)
		return NULL;
	d = pool->ops->pick(pool, flow);
	return d ? l4lb_real(d) : NULL;
}

/* Is there any real server for a new flow?  RCU. */
bool l4lb_service_usable(const struct l4lb_service *svc)
{
	const struct l4lb_pool *pool = rcu_dereference(svc->pool);
	unsigned int i;

	for (i = 0; pool->ops && i < pool->n; i++)
		if (l4lb_dest_usable(pool->dest[i]))
			return true;
	return false;
}

/* ---- control path ---- */

struct l4lb_service *l4lb_service_find(struct l4lb_net *ln,
				       const struct l4lb_svc_key *key)
{
	lockdep_assert_held(&ln->lock);
	return rhashtable_lookup_fast(&ln->svc_table, key, svc_params);
}

/* "none" without a scheduler.  RCU or configuration mutex. */
const char *l4lb_service_sched_name(const struct l4lb_service *svc)
{
	const struct l4lb_pool *pool;

	pool = rcu_dereference_check(svc->pool,
				     lockdep_is_held(&svc->ln->lock));
	return pool->ops ? pool->ops->name : "none";
}

/* Flags of one scheduler may mean something else to another, or nothing. */
static int check_flags(u32 flags, const struct l4lb_sched_ops *ops,
		       struct netlink_ext_ack *extack)
{
	u32 wrong = flags & L4LB_SCHED_FLAGS & ~(ops ? ops->flags : 0);

	if (!wrong)
		return 0;
	l4lb_err_attr_fmt(extack, NULL,
			  "scheduler %s does not have the flags 0x%x: clear them",
			  ops ? ops->name : "none", wrong);
	return -EINVAL;
}

static void service_apply(struct l4lb_service *svc,
			  const struct l4lb_svc_config *cfg)
{
	WRITE_ONCE(svc->flags, cfg->flags | IP_VS_SVC_F_HASHED);
	WRITE_ONCE(svc->timeout, cfg->timeout);
	WRITE_ONCE(svc->netmask, cfg->netmask);
}

static void service_free(struct l4lb_service *svc)
{
	l4lb_stats_destroy(&svc->stats);
	kfree(svc);
}

static void service_free_work(struct work_struct *work)
{
	service_free(container_of(to_rcu_work(work), struct l4lb_service,
				  work));
}

/* A complete service with an empty pool, not yet to be found. */
static struct l4lb_service *service_create(struct l4lb_net *ln,
					   const struct l4lb_svc_key *key,
					   const struct l4lb_svc_config *cfg,
					   const struct l4lb_sched_ops *ops)
{
	struct l4lb_service *svc;
	struct l4lb_pool *pool;
	int err;

	svc = kzalloc(sizeof(*svc), GFP_KERNEL);
	if (!svc)
		return ERR_PTR(-ENOMEM);
	svc->key = *key;
	svc->ln = ln;
	INIT_LIST_HEAD(&svc->dests);
	INIT_RCU_WORK(&svc->work, service_free_work);
	service_apply(svc, cfg);
	err = l4lb_stats_init(&svc->stats,
			      !READ_ONCE(ln->sysctl.run_estimation));
	if (err)
		goto err_free;

	svc->inst = inst_create(ln, ops);
	if (IS_ERR(svc->inst)) {
		err = PTR_ERR(svc->inst);
		goto err_stats;
	}
	pool = pool_create(svc, svc->inst, svc->flags);
	if (IS_ERR(pool)) {
		err = PTR_ERR(pool);
		goto err_inst;
	}
	pool_publish(svc, pool);
	return svc;

err_inst:
	inst_put(svc->inst);
err_stats:
	l4lb_stats_destroy(&svc->stats);
err_free:
	kfree(svc);
	return ERR_PTR(err);
}

/* A scheduler may have other reasons than memory. */
static void service_say_failed(int err, struct netlink_ext_ack *extack)
{
	if (err == -ENOMEM)
		NL_SET_ERR_MSG(extack, "no memory for the service or its scheduler");
	else
		NL_SET_ERR_MSG(extack, "the scheduler cannot work for this service");
}

static unsigned int *service_count(const struct l4lb_service *svc)
{
	return &svc->ln->n_services[svc->key.af == AF_INET6];
}

static bool service_any_port(const struct l4lb_service *svc)
{
	return !svc->key.fwmark && !svc->key.port;
}

/* Replies of its NATed servers have no connection. */
static bool service_one_packet(const struct l4lb_service *svc)
{
	return svc->flags & IP_VS_SVC_F_ONEPACKET && !svc->key.fwmark &&
	       svc->key.protocol == IPPROTO_UDP;
}

static void service_count_one_packet(struct l4lb_service *svc, int n)
{
	struct l4lb_net *ln = svc->ln;

	if (service_one_packet(svc))
		WRITE_ONCE(ln->n_one_packet, ln->n_one_packet + n);
}

/* Hooks first: until the service is in the table they find nothing. */
static int service_publish(struct l4lb_service *svc)
{
	unsigned int *count = service_count(svc);
	struct l4lb_net *ln = svc->ln;
	int err;

	if (!*count) {
		err = l4lb_hook_register(ln, svc->key.af);
		if (err)
			return err;
	}
	err = rhashtable_insert_fast(&ln->svc_table, &svc->node, svc_params);
	if (err) {
		if (!*count)
			l4lb_hook_unregister(ln, svc->key.af);
		return err;
	}
	if (svc->key.fwmark)
		WRITE_ONCE(ln->n_fwmark, ln->n_fwmark + 1);
	if (service_any_port(svc))
		WRITE_ONCE(ln->n_any_port, ln->n_any_port + 1);
	list_add_tail_rcu(&svc->list, &ln->services);
	if (!(*count)++)
		l4lb_fast_changed(ln);
	service_count_one_packet(svc, 1);
	l4lb_defence_kick(ln);
	return 0;
}

/**
 * l4lb_service_add() - create a virtual service without real servers
 * @ln: namespace
 * @key: its identity, unused bytes zero
 * @cfg: its settings
 * @ops: its scheduler, NULL for "none"; on success the caller's reference on
 *	it passes to the service, on failure it stays with the caller
 * @extack: gets a sentence on failure
 *
 * Return: 0 or a negative errno; -EEXIST if there is such a service, -EINVAL
 * for a scheduler's flag that @ops does not have.
 */
int l4lb_service_add(struct l4lb_net *ln, const struct l4lb_svc_key *key,
		     const struct l4lb_svc_config *cfg,
		     const struct l4lb_sched_ops *ops,
		     struct netlink_ext_ack *extack)
{
	struct l4lb_service *svc;
	int err;

	lockdep_assert_held(&ln->lock);
	if (ln->exiting) {
		NL_SET_ERR_MSG(extack, "the network namespace is going away");
		return -ENODEV;
	}
	if (l4lb_service_find(ln, key)) {
		NL_SET_ERR_MSG(extack, "the service exists already: edit or delete it");
		return -EEXIST;
	}
	err = check_flags(cfg->flags, ops, extack);
	if (err)
		return err;
	err = l4lb_conn_table_create(ln) ?: l4lb_real_bypass_create(ln) ?:
	      l4lb_fast_create(ln);
	if (err) {
		NL_SET_ERR_MSG(extack, "no memory for the connection table");
		return err;
	}
	svc = service_create(ln, key, cfg, ops);
	if (IS_ERR(svc)) {
		service_say_failed(PTR_ERR(svc), extack);
		return PTR_ERR(svc);
	}
	err = service_publish(svc);
	if (err) {
		NL_SET_ERR_MSG(extack, "the netfilter hooks could not be registered");
		pool_free(pool_current(svc));
		inst_put(svc->inst);
		service_free(svc);
		return err;
	}
	__module_get(THIS_MODULE);
	return 0;
}

/**
 * l4lb_service_edit() - change settings or scheduler of a service
 * @svc: the service
 * @cfg: all its settings, new and kept
 * @ops: its scheduler, NULL for "none"; the one that is bound keeps its state.
 *	On success the caller's reference on it is consumed, on failure it
 *	stays with the caller
 * @extack: gets a sentence on failure
 *
 * Return: 0, or a negative errno with nothing changed; -EINVAL for a
 * scheduler's flag that @ops does not have.
 */
int l4lb_service_edit(struct l4lb_service *svc,
		      const struct l4lb_svc_config *cfg,
		      const struct l4lb_sched_ops *ops,
		      struct netlink_ext_ack *extack)
{
	const struct l4lb_sched_ops *old_ops = inst_ops(svc->inst);
	struct l4lb_sched_inst *inst = svc->inst;
	struct l4lb_pool *pool;
	int err;

	lockdep_assert_held(&svc->ln->lock);
	err = check_flags(cfg->flags, ops, extack);
	if (err)
		return err;
	if (ops != old_ops)
		inst = inst_create(svc->ln, ops);
	if (IS_ERR(inst)) {
		service_say_failed(PTR_ERR(inst), extack);
		return PTR_ERR(inst);
	}
	pool = pool_create(svc, inst, cfg->flags | IP_VS_SVC_F_HASHED);
	if (IS_ERR(pool)) {
		service_say_failed(PTR_ERR(pool), extack);
		if (inst != svc->inst)
			inst_put(inst);
		return PTR_ERR(pool);
	}

	service_count_one_packet(svc, -1);
	service_apply(svc, cfg);
	service_count_one_packet(svc, 1);
	pool_publish(svc, pool);
	if (inst != svc->inst) {
		inst_put(svc->inst);
		svc->inst = inst;
	}
	/* Last: from here on its module may go, see l4lb_sched_unregister().
	 * The same scheduler as before had two references: one is left.
	 */
	l4lb_sched_put(old_ops);
	return 0;
}

/**
 * l4lb_service_sched() - the scheduler a service is bound to
 * @svc: the service
 *
 * Context: configuration mutex held; valid as long as it is.
 * Return: the scheduler, NULL for "none".
 */
const struct l4lb_sched_ops *l4lb_service_sched(const struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	return inst_ops(svc->inst);
}

/**
 * l4lb_service_options() - what a service's scheduler options are now
 * @svc: the service
 *
 * Context: configuration mutex held; valid as long as it is.
 * Return: the values, in the order of l4lb_sched_ops.options; NULL for "none".
 */
const u32 *l4lb_service_options(const struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	return svc->inst ? svc->inst->option : NULL;
}

/**
 * l4lb_service_set_options() - set all options of a service's scheduler
 * @svc: the service; its scheduler has options
 * @value: the new values, in the order of l4lb_sched_ops.options, in range
 * @set: bits of those that are the service's own from now on
 *
 * Packets see them at once, though not all at the same time.
 *
 * Context: configuration mutex held, may sleep.
 */
void l4lb_service_set_options(struct l4lb_service *svc, const u32 *value,
			      unsigned long set)
{
	struct l4lb_sched_inst *inst = svc->inst;
	unsigned int i;

	lockdep_assert_held(&svc->ln->lock);
	for (i = 0; i < inst->ops->n_options; i++)
		WRITE_ONCE(inst->option[i], value[i]);
	inst->set |= set;
	if (inst->ops->changed)
		inst->ops->changed(inst->state);
}

void l4lb_service_default_changed(struct l4lb_net *ln,
				  const struct l4lb_sched_ops *ops)
{
	struct l4lb_sched_inst *inst;
	struct l4lb_service *svc;
	unsigned int i;

	lockdep_assert_held(&ln->lock);
	list_for_each_entry(svc, &ln->services, list) {
		inst = svc->inst;
		if (inst_ops(inst) != ops)
			continue;
		for (i = 0; i < ops->n_options; i++)
			if (!(inst->set & BIT(i)))
				WRITE_ONCE(inst->option[i],
					   l4lb_sysctl_sched_value(ln, ops, i));
		if (ops->changed)
			ops->changed(inst->state);
	}
}

static void service_del(struct l4lb_service *svc)
{
	const struct l4lb_sched_ops *ops = inst_ops(svc->inst);
	unsigned int *count = service_count(svc);
	struct l4lb_net *ln = svc->ln;

	rhashtable_remove_fast(&ln->svc_table, &svc->node, svc_params);
	list_del_rcu(&svc->list);
	l4lb_guard_del(svc);
	if (svc->key.fwmark)
		WRITE_ONCE(ln->n_fwmark, ln->n_fwmark - 1);
	if (service_any_port(svc))
		WRITE_ONCE(ln->n_any_port, ln->n_any_port - 1);
	service_count_one_packet(svc, -1);
	if (svc->policy.fast_path)
		l4lb_service_set_fast_path(svc, L4LB_FAST_PATH_DEFAULT);
	l4lb_real_del_all(svc);
	if (!--(*count)) {
		l4lb_hook_unregister(ln, svc->key.af);
		l4lb_fast_changed(ln);
	}
	/* The pool pointer stays for readers that still have the service. */
	queue_rcu_work(l4lb_wq, &pool_current(svc)->work);
	inst_put(svc->inst);
	queue_rcu_work(l4lb_wq, &svc->work);
	l4lb_sched_put(ops);
	module_put(THIS_MODULE);
}

static void services_gone(struct l4lb_net *ln)
{
	if (READ_ONCE(ln->sysctl.expire_nodest_conn))
		l4lb_conn_expire_nodest(ln);
}

/* Its connections stay; so do its real servers for a while, in the trash. */
void l4lb_service_del(struct l4lb_service *svc)
{
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	service_del(svc);
	services_gone(ln);
}

void l4lb_service_flush(struct l4lb_net *ln)
{
	struct l4lb_service *svc, *next;

	lockdep_assert_held(&ln->lock);
	if (list_empty(&ln->services))
		return;
	list_for_each_entry_safe(svc, next, &ln->services, list)
		service_del(svc);
	services_gone(ln);
}

/* The counters of a service and of its real servers start again from 0. */
void l4lb_service_zero(struct l4lb_service *svc)
{
	struct l4lb_real *real;

	lockdep_assert_held(&svc->ln->lock);
	l4lb_stats_zero(&svc->stats);
	list_for_each_entry(real, &svc->dests, node)
		l4lb_stats_zero(&real->stats);
}

/* Services and real servers of a new namespace. */
int l4lb_service_net_init(struct l4lb_net *ln)
{
	int err;

	INIT_LIST_HEAD(&ln->services);
	err = rhashtable_init(&ln->svc_table, &svc_params);
	if (err)
		return err;
	err = l4lb_guard_net_init(ln);
	if (err)
		rhashtable_destroy(&ln->svc_table);
	return err;
}

/* Takes the configuration mutex.  Connections may still hold real servers. */
void l4lb_service_net_exit(struct l4lb_net *ln)
{
	bool any;

	mutex_lock(&ln->lock);
	ln->exiting = true;
	any = !list_empty(&ln->services);
	l4lb_service_flush(ln);
	mutex_unlock(&ln->lock);

	if (any)
		synchronize_rcu();	/* lookups in svc_table */
	l4lb_guard_net_exit(ln);
	rhashtable_destroy(&ln->svc_table);
}

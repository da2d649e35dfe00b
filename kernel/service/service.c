// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual services.
 *
 * Everything the packet path reads of a service is either a single word or
 * the pool: an immutable generation of its real servers, see pool.c.
 */
#include "service/service.h"
#include "conn/conn.h"
#include "api/control.h"
#include "conn/defence.h"
#include "service/server.h"
#include "entry/fast.h"
#include "service/guard.h"
#include "entry/hook.h"
#include "service/las.h"
#include "service/pool.h"

#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <net/ipv6.h>

/* Only the administrator puts anything into this table, so nobody can fill a
 * chain of it: a few words of a quick hash will do.
 */
static __always_inline u32 key_hash(const void *data, u32 len, u32 seed)
{
	const struct l4lb_svc_key *key = data;
	const union nf_inet_addr *addr = &key->addr;

	return jhash_3words(addr->all[0] ^ addr->all[1] ^ addr->all[2] ^
			    addr->all[3], key->fwmark,
			    (u32)key->protocol << 16 | (__force u16)key->port,
			    seed);
}

static __always_inline u32 service_hash(const void *data, u32 len, u32 seed)
{
	const struct l4lb_service *svc = data;

	return key_hash(&svc->key, len, seed);
}

static __always_inline int service_differs(struct rhashtable_compare_arg *arg,
					   const void *obj)
{
	const struct l4lb_service *svc = obj;
	const struct l4lb_svc_key *a = arg->key, *b = &svc->key;

	return a->port != b->port || a->protocol != b->protocol ||
	       a->af != b->af || a->fwmark != b->fwmark ||
	       !ipv6_addr_equal(&a->addr.in6, &b->addr.in6);
}

static const struct rhashtable_params svc_params = {
	.key_len	= sizeof(struct l4lb_svc_key),
	.key_offset	= offsetof(struct l4lb_service, key),
	.head_offset	= offsetof(struct l4lb_service, node),
	.hashfn		= key_hash,
	.obj_hashfn	= service_hash,
	.obj_cmpfn	= service_differs,
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

int l4lb_service_rebuild(struct l4lb_service *svc)
{
	struct l4lb_pool *pool;

	lockdep_assert_held(&svc->ln->lock);
	pool = l4lb_pool_create(svc, svc->inst, svc->flags);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	l4lb_pool_publish(svc, pool);
	return 0;
}

/* ---- packet path ---- */

/* A batch puts its services into the table before it is sure that all of it
 * can be had.  They are not there until they have their flags.
 */
static struct l4lb_service *lookup_live(struct l4lb_net *ln,
					const struct l4lb_svc_key *key)
{
	struct l4lb_service *svc;

	svc = rhashtable_lookup(&ln->svc_table, key, svc_params);
	/* Pairs with service_apply(): the flags, then the pool. */
	if (svc && smp_load_acquire(&svc->flags) & IP_VS_SVC_F_HASHED)
		return svc;
	return NULL;
}

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
		svc = lookup_live(ln, &key);
		if (svc)
			return svc;
		key.fwmark = 0;
	}
	key.addr = flow->daddr;
	key.protocol = flow->proto;
	key.port = flow->dport;
	svc = lookup_live(ln, &key);
	if (svc || !READ_ONCE(ln->n_any_port))
		return svc;
	key.port = 0;
	return lookup_live(ln, &key);
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
int l4lb_service_check_flags(u32 flags, const struct l4lb_sched_ops *ops,
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

/* With this a new service is there for packets: its pool must be, too. */
static void service_apply(struct l4lb_service *svc,
			  const struct l4lb_svc_config *cfg)
{
	WRITE_ONCE(svc->timeout, cfg->timeout);
	WRITE_ONCE(svc->netmask, cfg->netmask);
	/* Pairs with lookup_live(). */
	smp_store_release(&svc->flags, cfg->flags | IP_VS_SVC_F_HASHED);
}

static void service_free(struct l4lb_service *svc)
{
	l4lb_las_free(svc);
	l4lb_stats_destroy(&svc->stats);
	kfree(svc);
}

static void service_free_work(struct work_struct *work)
{
	service_free(container_of(to_rcu_work(work), struct l4lb_service,
				  work));
}

/**
 * l4lb_service_create() - a service without a pool, not yet to be found
 * @ln: namespace
 * @key: its identity
 * @ops: its scheduler, NULL for "none"
 *
 * Return: the service, for l4lb_service_discard() or, with a pool,
 * l4lb_service_enlist(); or an ERR_PTR().
 */
struct l4lb_service *l4lb_service_create(struct l4lb_net *ln,
					 const struct l4lb_svc_key *key,
					 const struct l4lb_sched_ops *ops)
{
	struct l4lb_service *svc;
	int err;

	svc = kzalloc(sizeof(*svc), GFP_KERNEL);
	if (!svc)
		return ERR_PTR(-ENOMEM);
	svc->key = *key;
	svc->ln = ln;
	INIT_LIST_HEAD(&svc->dests);
	INIT_RCU_WORK(&svc->work, service_free_work);
	err = l4lb_stats_init(&svc->stats,
			      !READ_ONCE(ln->sysctl.run_estimation));
	if (err)
		goto err_free;
	svc->inst = l4lb_inst_create(ln, ops);
	if (IS_ERR(svc->inst)) {
		err = PTR_ERR(svc->inst);
		goto err_stats;
	}
	return svc;

err_stats:
	l4lb_stats_destroy(&svc->stats);
err_free:
	kfree(svc);
	return ERR_PTR(err);
}

/* A scheduler may have other reasons than memory. */
void l4lb_service_say_failed(int err, struct netlink_ext_ack *extack)
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

/**
 * l4lb_service_insert() - reserve a place for a new service
 * @svc: from l4lb_service_create()
 * @extack: gets a sentence on failure
 *
 * Hooks come first: until the service is enlisted they find nothing.
 *
 * Return: 0 or a negative errno.
 */
int l4lb_service_insert(struct l4lb_service *svc,
			struct netlink_ext_ack *extack)
{
	struct l4lb_net *ln = svc->ln;
	int err;

	lockdep_assert_held(&ln->lock);
	err = l4lb_hook_register(ln, svc->key.af);
	if (err) {
		NL_SET_ERR_MSG(extack, "the netfilter hooks could not be registered");
		return err;
	}
	err = rhashtable_insert_fast(&ln->svc_table, &svc->node, svc_params);
	if (err) {
		NL_SET_ERR_MSG(extack, "no memory for the table of services");
		l4lb_hook_unregister(ln, svc->key.af);
		return err;
	}
	svc->inserted = true;
	return 0;
}

/**
 * l4lb_service_enlist() - a new service begins to work
 * @svc: inserted; its pool is published
 * @cfg: its settings
 *
 * Cannot fail.  The caller's reference on the scheduler passes to the service.
 */
void l4lb_service_enlist(struct l4lb_service *svc,
			 const struct l4lb_svc_config *cfg)
{
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	if (svc->key.fwmark)
		WRITE_ONCE(ln->n_fwmark, ln->n_fwmark + 1);
	if (service_any_port(svc))
		WRITE_ONCE(ln->n_any_port, ln->n_any_port + 1);
	service_apply(svc, cfg);
	list_add_tail_rcu(&svc->list, &ln->services);
	if (!(*service_count(svc))++)
		l4lb_fast_changed(ln);
	service_count_one_packet(svc, 1);
	l4lb_defence_kick(ln);
	__module_get(THIS_MODULE);
}

/**
 * l4lb_service_discard() - take back what was not enlisted
 * @svc: from l4lb_service_create(), without real servers
 */
void l4lb_service_discard(struct l4lb_service *svc)
{
	struct l4lb_pool *pool = l4lb_pool_current(svc);
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	l4lb_guard_del(svc);
	if (svc->inserted) {
		rhashtable_remove_fast(&ln->svc_table, &svc->node, svc_params);
		l4lb_hook_unregister(ln, svc->key.af);
	}
	if (pool)
		l4lb_pool_free(pool);
	l4lb_inst_put(svc->inst);
	/* A lookup may just be reading its flags. */
	queue_rcu_work(l4lb_wq, &svc->work);
}

int l4lb_service_net_prepare(struct l4lb_net *ln,
			     struct netlink_ext_ack *extack)
{
	int err = l4lb_conn_table_create(ln) ?: l4lb_real_bypass_create(ln) ?:
		  l4lb_fast_create(ln);

	if (err)
		NL_SET_ERR_MSG(extack, "no memory for the connection table");
	return err;
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
	struct l4lb_pool *pool;
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
	err = l4lb_service_check_flags(cfg->flags, ops, extack);
	if (err)
		return err;
	err = l4lb_service_net_prepare(ln, extack);
	if (err)
		return err;
	svc = l4lb_service_create(ln, key, ops);
	if (IS_ERR(svc)) {
		l4lb_service_say_failed(PTR_ERR(svc), extack);
		return PTR_ERR(svc);
	}
	pool = l4lb_pool_create(svc, svc->inst,
				cfg->flags | IP_VS_SVC_F_HASHED);
	if (IS_ERR(pool)) {
		err = PTR_ERR(pool);
		l4lb_service_say_failed(err, extack);
		goto err_discard;
	}
	l4lb_pool_publish(svc, pool);
	err = l4lb_service_insert(svc, extack);
	if (err)
		goto err_discard;
	l4lb_service_enlist(svc, cfg);
	return 0;

err_discard:
	l4lb_service_discard(svc);
	return err;
}

/**
 * l4lb_service_settle() - give a service what was made for it
 * @svc: the service
 * @cfg: all its settings, new and kept
 * @inst: a new scheduler instance, or the one it has
 * @pool: built under @inst
 *
 * Cannot fail.  The caller's reference on the scheduler is consumed.
 */
void l4lb_service_settle(struct l4lb_service *svc,
			 const struct l4lb_svc_config *cfg,
			 struct l4lb_sched_inst *inst, struct l4lb_pool *pool)
{
	const struct l4lb_sched_ops *old_ops = l4lb_inst_ops(svc->inst);

	lockdep_assert_held(&svc->ln->lock);
	service_count_one_packet(svc, -1);
	service_apply(svc, cfg);
	service_count_one_packet(svc, 1);
	l4lb_pool_publish(svc, pool);
	if (inst != svc->inst) {
		l4lb_inst_put(svc->inst);
		svc->inst = inst;
	}
	/* Last: from here on its module may go, see l4lb_sched_unregister().
	 * The same scheduler as before had two references: one is left.
	 */
	l4lb_sched_put(old_ops);
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
	const struct l4lb_sched_ops *old_ops = l4lb_inst_ops(svc->inst);
	struct l4lb_sched_inst *inst = svc->inst;
	struct l4lb_pool *pool;
	int err;

	lockdep_assert_held(&svc->ln->lock);
	err = l4lb_service_check_flags(cfg->flags, ops, extack);
	if (err)
		return err;
	if (ops != old_ops)
		inst = l4lb_inst_create(svc->ln, ops);
	if (IS_ERR(inst)) {
		l4lb_service_say_failed(PTR_ERR(inst), extack);
		return PTR_ERR(inst);
	}
	pool = l4lb_pool_create(svc, inst, cfg->flags | IP_VS_SVC_F_HASHED);
	if (IS_ERR(pool)) {
		l4lb_service_say_failed(PTR_ERR(pool), extack);
		if (inst != svc->inst)
			l4lb_inst_put(inst);
		return PTR_ERR(pool);
	}

	l4lb_service_settle(svc, cfg, inst, pool);
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
	return l4lb_inst_ops(svc->inst);
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
	lockdep_assert_held(&svc->ln->lock);
	svc->ln->generation++;
	l4lb_inst_set(svc->inst, value, svc->inst->set | set);
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
		if (l4lb_inst_ops(inst) != ops)
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
	const struct l4lb_sched_ops *ops = l4lb_inst_ops(svc->inst);
	unsigned int *count = service_count(svc);
	struct l4lb_net *ln = svc->ln;

	ln->generation++;
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
	queue_rcu_work(l4lb_wq, &l4lb_pool_current(svc)->work);
	l4lb_inst_put(svc->inst);
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

/* Newest first: that is where the tables by address look first, too. */
static void services_del(struct l4lb_net *ln, bool named)
{
	struct l4lb_service *svc, *next;
	bool any = false;

	lockdep_assert_held(&ln->lock);
	list_for_each_entry_safe_reverse(svc, next, &ln->services, list) {
		if (svc->named && !named)
			continue;
		service_del(svc);
		any = true;
		cond_resched();
	}
	if (any)
		services_gone(ln);
}

void l4lb_service_flush(struct l4lb_net *ln)
{
	services_del(ln, true);
}

/* All but those that a batch names. */
void l4lb_service_del_others(struct l4lb_net *ln)
{
	services_del(ln, false);
}

/* The counters of a service and of its real servers start again from 0. */
void l4lb_service_zero(struct l4lb_service *svc)
{
	struct l4lb_real *real;

	lockdep_assert_held(&svc->ln->lock);
	l4lb_stats_zero(&svc->stats);
	l4lb_las_zero(svc);
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

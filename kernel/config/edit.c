// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of virtual services.  Each is a transaction: steps that can fail come
 * first, and a failure undoes them.
 */
#include "config/edit.h"

#include <linux/module.h>
#include <linux/netlink.h>

#include "config/drain.h"
#include "config/helper.h"
#include "config/policy.h"
#include "config/ramp.h"
#include "config/server_edit.h"
#include "config/watch.h"
#include "conn/defence.h"
#include "conn/table.h"
#include "entry/fast_device.h"
#include "entry/hook.h"
#include "service/guard.h"
#include "service/pool.h"
#include "service/range.h"
#include "service/registry.h"
#include "service/shadow.h"
#include "sync/send.h"

static unsigned int *service_count(const struct l4lb_service *svc)
{
	return &svc->ln->n_services[svc->key.af == AF_INET6];
}

static bool service_any_port(const struct l4lb_service *svc)
{
	return !svc->key.fwmark && (!svc->key.port || l4lb_key_is_range(&svc->key));
}

/* May datagrams of its NATed servers have no connection?  With @sip they may begin
 * calls.
 */
static bool service_one_packet(const struct l4lb_service *svc, u32 flags,
			       bool sip)
{
	return (flags & IP_VS_SVC_F_ONEPACKET ||
		(sip && flags & IP_VS_SVC_F_PERSISTENT)) && !svc->key.fwmark &&
	       svc->key.protocol == IPPROTO_UDP;
}

static void service_count_one_packet(struct l4lb_service *svc, u32 flags,
				     bool sip, int n)
{
	struct l4lb_net *ln = svc->ln;

	if (service_one_packet(svc, flags, sip))
		WRITE_ONCE(ln->n_one_packet, ln->n_one_packet + n);
}

/**
 * l4lb_service_insert() - reserve a place for a new service
 * @svc: from l4lb_service_create()
 * @extack: gets a sentence on failure
 *
 * Hooks are registered first: they do not use the service until it is enlisted.
 *
 * Return: 0, -ENOSPC at the limit of services, or another negative errno.
 */
int l4lb_service_insert(struct l4lb_service *svc,
			struct netlink_ext_ack *extack)
{
	struct l4lb_net *ln = svc->ln;
	int err;

	lockdep_assert_held(&ln->lock);
	if (l4lb_at_limit(ln->n_inserted, &ln->sysctl.services_max)) {
		NL_SET_ERR_MSG(extack, "net.ipv4.vs.services_max allows no more services");
		return -ENOSPC;
	}
	err = l4lb_hook_register(ln, svc->key.af);
	if (err) {
		NL_SET_ERR_MSG(extack, "the netfilter hooks could not be registered");
		return err;
	}
	err = l4lb_service_table_add(svc, extack);
	if (err) {
		l4lb_hook_unregister(ln, svc->key.af);
		return err;
	}
	svc->inserted = true;
	ln->n_inserted++;
	return 0;
}

/**
 * l4lb_service_enlist() - put a new service to work
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
	service_count_one_packet(svc, cfg->flags, cfg->sip, 1);
	l4lb_service_apply(svc, cfg);
	list_add_tail_rcu(&svc->list, &ln->services);
	if (!(*service_count(svc))++)
		l4lb_fast_changed(ln);
	l4lb_defence_kick(ln);
	__module_get(THIS_MODULE);
}

/**
 * l4lb_service_discard() - free a service that was not enlisted
 * @svc: from l4lb_service_create(), without real servers
 */
void l4lb_service_discard(struct l4lb_service *svc)
{
	struct l4lb_pool *pool = l4lb_pool_current(svc);
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	l4lb_guard_del(svc);
	if (svc->inserted) {
		ln->n_inserted--;
		l4lb_service_table_del(svc);
		l4lb_hook_unregister(ln, svc->key.af);
	}
	if (pool)
		l4lb_pool_free(pool);
	l4lb_inst_put(svc->inst);
	/* A lookup may still be reading its flags. */
	queue_rcu_work(l4lb_wq, &svc->work);
}

int l4lb_service_net_prepare(struct l4lb_net *ln,
			     struct netlink_ext_ack *extack)
{
	int err = l4lb_conn_table_create(ln, &l4lb_sync_events) ?:
		  l4lb_server_bypass_create(ln) ?: l4lb_fast_create(ln) ?:
		  l4lb_events_create(ln, l4lb_watch_look, l4lb_drain_expire,
				     l4lb_ramp_look);

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
 * Return: 0 or a negative errno; -EEXIST if the service exists.
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
	l4lb_event_service(L4LB_EVENT_SERVICE_ADDED, svc);
	return 0;

err_discard:
	l4lb_service_discard(svc);
	return err;
}

/**
 * l4lb_service_settle() - give a service its new settings, scheduler and pool
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
	bool old_sip = l4lb_service_has_sip(svc);
	u32 old_flags = svc->flags;

	lockdep_assert_held(&svc->ln->lock);
	/* It counts all the time if it was one before: replies rely on it. */
	service_count_one_packet(svc, cfg->flags, cfg->sip, 1);
	l4lb_service_apply(svc, cfg);
	service_count_one_packet(svc, old_flags, old_sip, -1);
	l4lb_pool_publish(svc, pool);
	if (inst != svc->inst) {
		l4lb_inst_put(svc->inst);
		svc->inst = inst;
	}
	/* Last: now its module may be unloaded, see l4lb_sched_unregister().
	 * An unchanged scheduler had two references, and one is left.
	 */
	l4lb_sched_put(old_ops);
}

/**
 * l4lb_service_edit() - change settings or scheduler of a service
 * @svc: the service
 * @cfg: all its settings, new and kept
 * @ops: its scheduler, NULL for "none"; an unchanged one keeps its state.
 *	On success the caller's reference on it is consumed, on failure it
 *	stays with the caller
 * @extack: gets a sentence on failure
 *
 * Flags that @ops does not have are kept and have no effect: programs read a
 * service, change one thing and write it back.
 *
 * Return: 0, or a negative errno with nothing changed.
 */
int l4lb_service_edit(struct l4lb_service *svc,
		      const struct l4lb_svc_config *cfg,
		      const struct l4lb_sched_ops *ops,
		      struct netlink_ext_ack *extack)
{
	const struct l4lb_sched_ops *old_ops = l4lb_inst_ops(svc->inst);
	struct l4lb_sched_inst *inst = svc->inst;
	struct l4lb_pool *pool;
	enum l4lb_event event;

	lockdep_assert_held(&svc->ln->lock);
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

	event = ops != old_ops ? L4LB_EVENT_SCHEDULER :
				 L4LB_EVENT_SERVICE_CHANGED;
	l4lb_service_settle(svc, cfg, inst, pool);
	l4lb_event_service(event, svc);
	return 0;
}

static void service_del(struct l4lb_service *svc)
{
	const struct l4lb_sched_ops *ops = l4lb_inst_ops(svc->inst);
	unsigned int *count = service_count(svc);
	struct l4lb_net *ln = svc->ln;

	ln->generation++;
	l4lb_event_service(L4LB_EVENT_SERVICE_DELETED, svc);
	ln->n_inserted--;
	l4lb_service_table_del(svc);
	list_del_rcu(&svc->list);
	l4lb_guard_del(svc);
	if (svc->key.fwmark)
		WRITE_ONCE(ln->n_fwmark, ln->n_fwmark - 1);
	if (service_any_port(svc))
		WRITE_ONCE(ln->n_any_port, ln->n_any_port - 1);
	service_count_one_packet(svc, svc->flags, l4lb_service_has_sip(svc), -1);
	if (svc->policy.fast_path)
		l4lb_service_set_fast_path(svc, L4LB_FAST_PATH_DEFAULT);
	l4lb_service_set_conn_state(svc, L4LB_SERVICE_STATE_EAGER);
	l4lb_shadow_set(svc, NULL);
	if (IS_ENABLED(CONFIG_NF_CONNTRACK))
		l4lb_service_unhelp(svc);
	l4lb_server_del_all(svc);
	l4lb_server_unstick(svc);
	if (!--(*count)) {
		l4lb_hook_unregister(ln, svc->key.af);
		l4lb_fast_changed(ln);
	}
	/* The pool pointer stays for readers that still have the service. */
	l4lb_pool_retire(l4lb_pool_current(svc));
	l4lb_inst_put(svc->inst);
	queue_rcu_work(l4lb_wq, &svc->work);
	l4lb_sched_put(ops);
	module_put(THIS_MODULE);
}

/**
 * l4lb_service_may_go() - may this service be removed on request?
 * @svc: the service
 * @extack: gets a sentence if not
 *
 * Return: 0, or -EBUSY: it is protected.
 */
int l4lb_service_may_go(const struct l4lb_service *svc,
			struct netlink_ext_ack *extack)
{
	if (!svc->claim.protected)
		return 0;
	NL_SET_ERR_MSG(extack, "the service is protected");
	return -EBUSY;
}

/* One of many: l4lb_server_removed() is to follow. */
void l4lb_service_del_one(struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	service_del(svc);
}

/* Its connections stay.  Its real servers stay in the trash for a while. */
void l4lb_service_del(struct l4lb_service *svc)
{
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	service_del(svc);
	l4lb_server_removed(ln);
}

enum which { ALL, UNPROTECTED, UNNAMED };

static bool is_one(const struct l4lb_service *svc, enum which which)
{
	return which == ALL || (which == UNNAMED && !svc->named) ||
	       (which == UNPROTECTED && !svc->claim.protected);
}

static void services_del(struct l4lb_net *ln, enum which which)
{
	struct l4lb_service *svc, *next;
	bool any = false;

	lockdep_assert_held(&ln->lock);
	list_for_each_entry_safe(svc, next, &ln->services, list) {
		if (!is_one(svc, which))
			continue;
		service_del(svc);
		any = true;
		cond_resched();
	}
	if (any)
		l4lb_server_removed(ln);
}

void l4lb_service_flush(struct l4lb_net *ln)
{
	services_del(ln, UNPROTECTED);
}

/* For the end of a namespace. */
void l4lb_service_del_all(struct l4lb_net *ln)
{
	services_del(ln, ALL);
}

/* Delete the services that the batch does not name. */
void l4lb_service_del_others(struct l4lb_net *ln)
{
	services_del(ln, UNNAMED);
}

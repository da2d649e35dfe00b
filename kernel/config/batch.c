// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: many services and their real servers, all at once or not at all.
 *
 *	prepare  missing services and servers are created; packets ignore them
 *	try      real servers get their settings, and pools are built from them
 *	commit   everything is published; this step cannot fail
 *
 * A failure in the first two steps undoes both.  A scheduler builds its table
 * from the settings of the real servers themselves, so packets may see a new
 * weight or method of an existing server before the rest of the batch, as when
 * a single server is edited.  If memory runs out then, these are restored.
 *
 * The pool of each service is built once, whatever the number of its servers.
 */
#include "config/batch.h"

#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "config/edit.h"
#include "config/policy.h"
#include "config/ramp.h"
#include "config/server_edit.h"
#include "conn/table.h"
#include "entry/hook.h"
#include "service/guard.h"
#include "service/las.h"
#include "service/pool.h"
#include "service/ramp.h"
#include "service/range.h"
#include "service/registry.h"
#include "service/sched_default.h"
#include "service/shadow.h"

/* Servers between two looks at signals and other processes. */
#define BREATH		256

int l4lb_batch_alloc(struct l4lb_batch *b, unsigned int n_services,
		     unsigned int n_servers)
{
	memset(b, 0, sizeof(*b));
	b->at_server = -1;
	b->services = kvcalloc(n_services, sizeof(*b->services), GFP_KERNEL);
	b->servers = kvcalloc(max(n_servers, 1U), sizeof(*b->servers),
			      GFP_KERNEL);
	if (b->services && b->servers)
		return 0;
	l4lb_batch_free(b);
	return -ENOMEM;
}

/* Also drops the references on schedulers that were not consumed. */
void l4lb_batch_free(struct l4lb_batch *b)
{
	unsigned int i;

	for (i = 0; i < b->n_services; i++) {
		l4lb_values_release(&b->services[i].values);
		l4lb_sched_put(b->services[i].ops);
		l4lb_sched_put(b->services[i].shadow_ops);
	}
	kvfree(b->services);
	kvfree(b->servers);
	b->services = NULL;
	b->servers = NULL;
	b->n_services = 0;
}

/* ---- prepare ---- */

/* Stop early if a fatal signal is pending. */
static int check_signal(struct netlink_ext_ack *extack)
{
	cond_resched();
	if (!fatal_signal_pending(current))
		return 0;
	NL_SET_ERR_MSG(extack, "interrupted");
	return -EINTR;
}

static int prepare_new(struct l4lb_net *ln, struct l4lb_batch_service *s,
		       struct netlink_ext_ack *extack)
{
	struct l4lb_service *svc = l4lb_service_create(ln, &s->key, s->ops);
	int err;

	if (IS_ERR(svc)) {
		l4lb_service_say_failed(PTR_ERR(svc), extack);
		return PTR_ERR(svc);
	}
	err = l4lb_service_insert(svc, extack);
	if (err) {
		l4lb_service_discard(svc);
		return err;
	}
	s->svc = svc;
	s->inst = svc->inst;
	s->is_new = true;
	return 0;
}

static int prepare_old(struct l4lb_batch_service *s, struct l4lb_service *svc,
		       struct netlink_ext_ack *extack)
{
	struct l4lb_sched_inst *inst = svc->inst;

	if (s->ops != l4lb_inst_ops(inst))
		inst = l4lb_inst_create(svc->ln, s->ops);
	if (IS_ERR(inst)) {
		l4lb_service_say_failed(PTR_ERR(inst), extack);
		return PTR_ERR(inst);
	}
	s->svc = svc;
	s->inst = inst;
	return 0;
}

static int prepare_removal(struct l4lb_net *ln, const struct l4lb_batch *b,
			   struct l4lb_batch_service *s,
			   struct netlink_ext_ack *extack)
{
	s->svc = l4lb_service_find(ln, &s->key);
	if (s->svc) {
		s->svc->leaves = true;
		return l4lb_service_may_go(s->svc, extack);
	}
	if (b->mode != L4LB_SET_CHANGE)
		return 0;
	NL_SET_ERR_MSG(extack, "there is no such service");
	return -ESRCH;
}

static int prepare_service(struct l4lb_net *ln, const struct l4lb_batch *b,
			   struct l4lb_batch_service *s,
			   struct netlink_ext_ack *extack)
{
	struct l4lb_service *svc = l4lb_service_find(ln, &s->key);
	u32 old = svc ? svc->flags : 0;
	int err;

	if (svc && b->mode == L4LB_SET_ADD) {
		NL_SET_ERR_MSG(extack, "the service exists already");
		return -EEXIST;
	}
	if (!svc && b->mode == L4LB_SET_CHANGE) {
		NL_SET_ERR_MSG(extack, "there is no such service");
		return -ESRCH;
	}
	s->cfg.flags = (old & ~s->mask) | (s->cfg.flags & s->mask) |
		       IP_VS_SVC_F_HASHED;
	err = svc ? prepare_old(s, svc, extack) : prepare_new(ln, s, extack);
	if (err)
		return err;
	s->svc->named = true;
	err = l4lb_policy_check_range(s->svc, &s->cfg, extack);
	if (!err && b->mode == L4LB_SET_CHANGE)		/* what was saved is restored */
		err = l4lb_policy_check_lazy(s->svc, &s->policy, s->cfg.flags,
					     s->ops, extack) ?:
		      l4lb_policy_check_snat(s->svc, &s->policy, s->cfg.flags,
					     s->cfg.sip, extack);
	return err ?: l4lb_service_reserve_policy(s->svc, &s->policy, extack);
}

static int prepare_servers(struct l4lb_batch *b, struct l4lb_batch_service *s,
			   struct netlink_ext_ack *extack)
{
	struct l4lb_batch_server *d;
	struct l4lb_server *server;
	bool fine = b->mode != L4LB_SET_CHANGE;	/* as in prepare_service() */
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		if (i % BREATH == 0 && check_signal(extack))
			return -EINTR;
		d = &b->servers[s->first + i];
		b->at_server = i;
		server = l4lb_server_prepare(s->svc, &d->cfg, extack);
		if (IS_ERR(server))
			return PTR_ERR(server);
		d->server = server;
		server->named = true;
		fine |= (d->cfg.method & IP_VS_CONN_F_FWD_MASK) == IP_VS_CONN_F_MASQ;
	}
	b->at_server = -1;
	return fine ? 0 : l4lb_policy_check_nat(s->svc, &s->policy, extack);
}

/* REPLACE removes services that the batch does not name. */
static int prepare_others(struct l4lb_net *ln, struct l4lb_batch *b,
			  struct netlink_ext_ack *extack)
{
	struct l4lb_service *svc;
	int err;

	if (b->mode != L4LB_SET_REPLACE)
		return 0;
	b->at_service = b->n_services;
	list_for_each_entry(svc, &ln->services, list) {
		if (!svc->named && svc->claim.protected) {
			NL_SET_ERR_MSG(extack,
				       "a service that is not named is protected");
			return -EBUSY;
		}
		if (!svc->named && l4lb_key_is_range(&svc->key) && !b->knows_ranges) {
			NL_SET_ERR_MSG(extack,
				       "a service with a range is not named: the sender knows no ranges");
			return -EOPNOTSUPP;
		}
		err = check_signal(extack);
		if (err)
			return err;
	}
	return 0;
}

static bool is_named(const struct l4lb_service *svc)
{
	return svc->named;
}

static bool is_left(const struct l4lb_service *svc)
{
	return !svc->leaves;
}

/* The ranges of all services are known now. */
static int prepare_ranges(struct l4lb_net *ln, struct l4lb_batch *b,
			  struct netlink_ext_ack *extack)
{
	struct l4lb_service *refused;
	unsigned int i;
	int err;

	err = l4lb_ranges_prepare(ln, b->mode == L4LB_SET_REPLACE ? is_named : is_left,
				  &refused, extack);
	for (i = 0; refused && i < b->n_services; i++)
		if (b->services[i].svc == refused)
			b->at_service = i;
	return err;
}

static int prepare(struct l4lb_net *ln, struct l4lb_batch *b,
		   struct netlink_ext_ack *extack)
{
	unsigned int i;
	int err = 0;

	b->at_server = -1;
	for (i = 0; i < b->n_services && !err; i++) {
		struct l4lb_batch_service *s = &b->services[i];

		b->at_service = i;
		if (s->remove)
			err = prepare_removal(ln, b, s, extack);
		else
			err = prepare_service(ln, b, s, extack) ?:
			      prepare_servers(b, s, extack);
		err = err ?: check_signal(extack);
	}
	return err ?: prepare_others(ln, b, extack) ?: prepare_ranges(ln, b, extack);
}

/* ---- try ---- */

/* Does this real server of the service stay? */
static bool stays(const struct l4lb_batch *b,
		  const struct l4lb_batch_service *s,
		  const struct l4lb_server *server)
{
	return server->named || !(s->exact || b->mode == L4LB_SET_REPLACE);
}

/* Existing real servers in their order, then new ones. */
static struct l4lb_pool *fill_pool(const struct l4lb_batch *b,
				   const struct l4lb_batch_service *s)
{
	const struct l4lb_batch_server *named = &b->servers[s->first];
	struct l4lb_server *server;
	struct l4lb_pool *pool;
	unsigned int i, n = 0;

	list_for_each_entry(server, &s->svc->servers, node)
		n += stays(b, s, server);
	for (i = 0; i < s->n; i++)
		n += l4lb_server_is_new(named[i].server);
	pool = l4lb_pool_new(s->svc, n);
	if (!pool)
		return NULL;
	n = 0;
	list_for_each_entry(server, &s->svc->servers, node)
		if (stays(b, s, server))
			l4lb_pool_put(pool, n++, server);
	for (i = 0; i < s->n; i++)
		if (l4lb_server_is_new(named[i].server))
			l4lb_pool_put(pool, n++, named[i].server);
	return pool;
}

/* No packet reads those that are set here: build() does. */
static int try_options(struct l4lb_batch_service *s,
		       struct netlink_ext_ack *extack)
{
	unsigned int i;
	int err;

	if (!s->ops || !s->ops->n_options)
		return 0;
	for (i = 0; i < s->ops->n_options; i++)
		if (!(s->set & BIT(i)))
			s->values.option[i] = l4lb_sched_default(s->svc->ln,
								 s->ops, i);
	err = l4lb_values_settle(&s->values, s->inst, extack);
	if (err)
		return err;
	s->differs = memcmp(s->values.option, s->inst->option,
			    s->ops->n_options * sizeof(u32));
	s->differs |= l4lb_values_swap(&s->values, s->inst);
	s->swapped = true;
	return 0;
}

/* After the new weights: have those that join others start slowly. */
static void begin_ramps(struct l4lb_batch *b, struct l4lb_batch_service *s)
{
	struct l4lb_batch_server *d;
	struct l4lb_server *server;
	unsigned int i, joined = 0;
	long others = 0;

	if (s->is_new || !l4lb_ramp_due(s->svc, s->policy.ramp))
		return;
	list_for_each_entry(server, &s->svc->servers, node) {
		others += stays(b, s, server) && server->sched.weight;
		cond_resched();
	}
	for (i = 0; i < s->n; i++) {
		d = &b->servers[s->first + i];
		d->joins = d->cfg.weight && (l4lb_server_is_new(d->server) ||
					     !d->old.weight);
		joined += d->joins && !l4lb_server_is_new(d->server);
	}
	if (others <= joined)
		s->svc->fresh = jiffies;	/* there is nobody to join */
	for (i = 0; i < s->n; i++) {
		d = &b->servers[s->first + i];
		d->joins &= others > joined;
		if (d->joins)
			l4lb_ramp_begin(d->server, s->svc);
	}
}

static int try_service(struct l4lb_batch *b, struct l4lb_batch_service *s,
		       struct netlink_ext_ack *extack)
{
	struct l4lb_pool *pool = fill_pool(b, s);
	struct l4lb_batch_server *d;
	int err;

	if (!pool) {
		l4lb_service_say_failed(-ENOMEM, extack);
		return -ENOMEM;
	}
	for (; s->tried < s->n; s->tried++) {
		if (s->tried % BREATH == 0 && check_signal(extack)) {
			l4lb_pool_free(pool);
			return -EINTR;
		}
		d = &b->servers[s->first + s->tried];
		l4lb_server_save(d->server, &d->old);
		d->old_last = d->server->sched.last_weight;
		l4lb_server_apply(d->server, &d->cfg);
	}
	begin_ramps(b, s);
	err = try_options(s, extack);
	if (err) {
		l4lb_pool_free(pool);
		return err;
	}
	err = l4lb_pool_build(s->svc, pool, s->inst, s->cfg.flags);
	if (err) {
		l4lb_service_say_failed(err, extack);
		return err;
	}
	s->pool = pool;
	if (s->shadow_ops != l4lb_shadow_sched(s->svc))
		s->shadow = l4lb_shadow_create(s->svc, s->shadow_ops, pool, extack);
	return PTR_ERR_OR_ZERO(s->shadow);
}

static int try(struct l4lb_batch *b, struct netlink_ext_ack *extack)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < b->n_services && !err; i++) {
		b->at_service = i;
		if (!b->services[i].remove)
			err = try_service(b, &b->services[i], extack) ?:
			      check_signal(extack);
	}
	return err;
}

/* ---- undo ---- */

static void undo_servers(struct l4lb_batch *b, struct l4lb_batch_service *s)
{
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		struct l4lb_batch_server *d = &b->servers[s->first + i];

		if (!d->server)
			break;
		d->server->named = false;
		if (d->joins)
			l4lb_ramp_end(d->server);
		if (i < s->tried) {
			l4lb_server_apply(d->server, &d->old);
			WRITE_ONCE(d->server->sched.last_weight, d->old_last);
		}
		l4lb_server_release(d->server);
		if (i % BREATH == 0)
			cond_resched();
	}
}

static void undo(struct l4lb_net *ln, struct l4lb_batch *b)
{
	unsigned int i;

	l4lb_ranges_cancel(ln);
	for (i = 0; i < b->n_services; i++) {
		struct l4lb_batch_service *s = &b->services[i];

		if (s->remove && s->svc)
			s->svc->leaves = false;
		if (s->remove)
			continue;
		if (!s->svc)
			break;
		l4lb_shadow_discard(s->shadow);
		/* Before the real servers that the pool refers to. */
		if (s->pool)
			l4lb_pool_free(s->pool);
		if (s->swapped)
			l4lb_values_swap(&s->values, s->inst);
		undo_servers(b, s);
		s->svc->named = false;
		if (s->is_new)
			l4lb_service_discard(s->svc);
		else if (s->inst != s->svc->inst)
			l4lb_inst_put(s->inst);
		cond_resched();
	}
}

/* ---- commit ---- */

static void enlist_servers(struct l4lb_batch *b,
			   const struct l4lb_batch_service *s)
{
	struct l4lb_server *server;
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		server = b->servers[s->first + i].server;
		b->servers[s->first + i].is_new = l4lb_server_is_new(server);
		if (l4lb_server_is_new(server))
			l4lb_server_enlist(server, s->svc);
		if (i % BREATH == 0)
			cond_resched();
	}
}

static void retire_others(const struct l4lb_batch *b,
			  const struct l4lb_batch_service *s, bool *any)
{
	struct l4lb_service *svc = s->svc;
	struct l4lb_server *server, *next;
	unsigned int n = 0;

	list_for_each_entry_safe(server, next, &svc->servers, node) {
		if (!stays(b, s, server)) {
			l4lb_event_server(L4LB_EVENT_SERVER_DELETED, server);
			l4lb_server_retire(server, svc);
			*any = true;
		}
		server->named = false;
		if (++n % BREATH == 0)
			cond_resched();
	}
}

/* What listeners are told of the service, which still has its settings. */
static enum l4lb_event what_happens(const struct l4lb_batch_service *s)
{
	const struct l4lb_service *svc = s->svc;

	if (s->is_new)
		return L4LB_EVENT_SERVICE_ADDED;
	if (s->inst != svc->inst)
		return L4LB_EVENT_SCHEDULER;
	if (s->differs || s->cfg.flags != svc->flags ||
	    s->cfg.timeout != svc->timeout ||
	    s->cfg.netmask != svc->netmask ||
	    s->cfg.sip != l4lb_service_has_sip(svc) ||
	    memcmp(&s->policy, &svc->policy, sizeof(s->policy)) ||
	    strcmp(s->claim.owner, svc->claim.owner) ||
	    s->claim.protected != svc->claim.protected ||
	    s->shadow_ops != l4lb_shadow_sched(svc))
		return L4LB_EVENT_SERVICE_CHANGED;
	return L4LB_EVENT_UNSPEC;
}

static void tell(const struct l4lb_batch *b, const struct l4lb_batch_service *s,
		 enum l4lb_event what)
{
	const struct l4lb_batch_server *d;
	unsigned int i;

	if (what)
		l4lb_event_service(what, s->svc);
	for (i = 0; i < s->n; i++) {
		d = &b->servers[s->first + i];
		l4lb_server_settled(d->server, d->is_new ? NULL : &d->old);
		if (i % BREATH == 0)
			cond_resched();
	}
}

static void commit_service(struct l4lb_batch *b, struct l4lb_batch_service *s,
			   bool *removed)
{
	enum l4lb_event what = what_happens(s);
	struct l4lb_service *svc = s->svc;
	bool shadows = s->shadow_ops != l4lb_shadow_sched(svc);

	enlist_servers(b, s);
	retire_others(b, s, removed);
	if (s->swapped)
		l4lb_values_commit(&s->values, s->inst, s->set);
	l4lb_values_release(&s->values);	/* what the instance had */
	l4lb_service_apply_policy(svc, &s->policy);
	svc->claim = s->claim;
	if (shadows)
		l4lb_shadow_set(svc, NULL);
	if (s->is_new) {
		l4lb_pool_publish(svc, s->pool);
		l4lb_service_enlist(svc, &s->cfg);
	} else {
		l4lb_service_settle(svc, &s->cfg, s->inst, s->pool);
	}
	s->ops = NULL;	/* the reference is the service's now */
	if (shadows) {
		l4lb_shadow_set(svc, s->shadow);
		s->shadow_ops = NULL;	/* likewise, the shadow's */
	}
	tell(b, s, what);
}

static void remove_services(struct l4lb_batch *b, bool *removed)
{
	unsigned int i;

	for (i = 0; i < b->n_services; i++) {
		struct l4lb_batch_service *s = &b->services[i];

		if (!s->remove || !s->svc)
			continue;
		l4lb_service_del_one(s->svc);
		*removed = true;
		cond_resched();
	}
}

static void commit(struct l4lb_net *ln, struct l4lb_batch *b)
{
	bool removed = false;
	unsigned int i;

	l4lb_timeouts_set(ln, &b->timeouts);
	for (i = 0; i < b->n_services; i++) {
		if (!b->services[i].remove)
			commit_service(b, &b->services[i], &removed);
		cond_resched();
	}
	l4lb_ranges_publish(ln);
	l4lb_server_set_loss_named(ln);
	if (b->mode == L4LB_SET_REPLACE)
		l4lb_service_del_others(ln);
	for (i = 0; i < b->n_services; i++)
		if (!b->services[i].remove)
			b->services[i].svc->named = false;
	remove_services(b, &removed);
	if (removed)
		l4lb_server_removed(ln);
}

/**
 * l4lb_batch_apply() - make a batch the configuration, or change nothing
 * @ln: namespace
 * @b: the batch, checked by l4lb_batch_check(); its services have all their
 *	settings.  @b->mode decides about services and real servers that it does
 *	not name
 * @extack: gets a sentence on failure
 *
 * Context: configuration mutex held, may sleep.
 * Return: 0, or a negative errno with @b->at_service and @b->at_server set:
 * -EEXIST for an existing service (L4LB_SET_ADD), -ESRCH for one that is not
 * there (L4LB_SET_CHANGE), -EINTR after a fatal signal, or any error of adding
 * or editing a single service or real server.
 */
int l4lb_batch_apply(struct l4lb_net *ln, struct l4lb_batch *b,
		     struct netlink_ext_ack *extack)
{
	int err;

	lockdep_assert_held(&ln->lock);
	if (ln->exiting) {
		NL_SET_ERR_MSG(extack, "the network namespace is going away");
		return -ENODEV;
	}
	err = l4lb_service_net_prepare(ln, extack);
	if (err)
		return err;
	/* Registered by the preparation, counted by the commit: in between, a
	 * removal must not take them away.
	 */
	ln->hooks_held = true;
	err = prepare(ln, b, extack) ?: try(b, extack);
	if (err)
		undo(ln, b);
	else
		commit(ln, b);
	ln->hooks_held = false;
	l4lb_hook_unregister(ln, AF_INET);
	l4lb_hook_unregister(ln, AF_INET6);
	return err;
}

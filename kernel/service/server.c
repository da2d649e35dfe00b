// SPDX-License-Identifier: GPL-2.0
/*
 * Real servers: their life, their configuration, their thresholds.
 *
 *	          add                     del
 *	(nothing) ----> in a service  <--------->  in the trash ----> freed
 *	                 available       add        no one refers to it,
 *	                                            for two minutes
 *
 * A removed server keeps its connections, and they keep it: if it is added
 * again to a service with the same identity before it is freed, the same
 * object is revived with its counters, and the connections go on.
 *
 * References are held by the list it is in (service or trash), by each pool
 * and by each connection.
 */
#include "service/server.h"
#include "conn/conn.h"
#include "entry/hook.h"
#include "service/route.h"

#include <linux/inetdevice.h>
#include <linux/netlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/route.h>

#define TRASH_SWEEP	(60 * HZ)
#define TRASH_IDLE	(120 * HZ)

/* ---- checks, in the order user space relies on ---- */

/* @cfg on its own. */
static int dest_check_config(const struct l4lb_service *svc,
			     const struct l4lb_dest_config *cfg,
			     struct netlink_ext_ack *extack)
{
	u32 method = cfg->method & IP_VS_CONN_F_FWD_MASK;

	if (cfg->af != svc->key.af && method != IP_VS_CONN_F_TUNNEL) {
		NL_SET_ERR_MSG(extack, "a server of the other family needs method tunnel");
		return -EINVAL;
	}
	if (cfg->weight < 0) {
		NL_SET_ERR_MSG(extack, "the weight must be 0 to 2147483647");
		return -ERANGE;
	}
	if (cfg->l_thresh > cfg->u_thresh) {
		NL_SET_ERR_MSG(extack, "the lower threshold must not be above the upper one");
		return -ERANGE;
	}
	if (cfg->u_thresh > INT_MAX) {
		NL_SET_ERR_MSG(extack, "the upper threshold must be 0 to 2147483647");
		return -EINVAL;
	}
	if (cfg->tun.type == IP_VS_CONN_F_TUNNEL_TYPE_GUE && !cfg->tun.port) {
		NL_SET_ERR_MSG(extack, "tunnel type gue needs a tunnel port");
		return -EINVAL;
	}
	return 0;
}

static int dest_check_ipv4(struct net *net, __be32 addr,
			   struct netlink_ext_ack *extack)
{
	unsigned int type = inet_addr_type(net, addr);

	if (type == RTN_LOCAL || type == RTN_UNICAST)
		return 0;
	/* Without a local table every address looks like a broadcast. */
	if (type == RTN_BROADCAST && !(net->loopback_dev->flags & IFF_UP))
		NL_SET_ERR_MSG(extack, "cannot check the address while lo is down: bring lo up");
	else
		NL_SET_ERR_MSG(extack, "the real server's address must be unicast");
	return -EINVAL;
}

/* A kernel booted with ipv6.disable=1 has no table of addresses to look in. */
static int dest_check_ipv6(struct net *net, const struct in6_addr *addr,
			   struct netlink_ext_ack *extack)
{
	int type = ipv6_addr_type(addr);

	if ((type & IPV6_ADDR_UNICAST) && !(type & IPV6_ADDR_LINKLOCAL))
		return 0;
	if (ipv6_mod_enabled() && ipv6_chk_addr(net, addr, NULL, 0))
		return 0;
	NL_SET_ERR_MSG(extack, "the real server's address must be unicast and not link-local");
	return -EINVAL;
}

/* @real: what l4lb_real_find() says about @cfg; @add: it is to be new. */
static int dest_check(const struct l4lb_service *svc,
		      const struct l4lb_real *real,
		      const struct l4lb_dest_config *cfg, bool add,
		      struct netlink_ext_ack *extack)
{
	struct net *net = svc->ln->net;
	int err;

	err = dest_check_config(svc, cfg, extack);
	if (err)
		return err;
	if (add && real) {
		NL_SET_ERR_MSG(extack, "the service has this real server already: edit it");
		return -EEXIST;
	}
	if (!add && !real) {
		NL_SET_ERR_MSG(extack, "the service has no such real server: add it");
		return -ENOENT;
	}
	if (add) {
		if (cfg->af == AF_INET)
			err = dest_check_ipv4(net, cfg->addr.ip, extack);
		else
			err = dest_check_ipv6(net, &cfg->addr.in6, extack);
		if (err)
			return err;
	}
	return 0;
}

/* ---- life ---- */

static void real_free_rcu(struct rcu_head *rcu)
{
	struct l4lb_real *real = container_of(rcu, struct l4lb_real, rcu);

	l4lb_stats_destroy(&real->stats);
	kfree(real);
}

/* The counters stay until readers of a connection to it are done.  The route
 * need not: @real has been out of service for long, so nobody sends to it and
 * the cache is not filled again.
 */
void l4lb_real_put(struct l4lb_real *real)
{
	if (!refcount_dec_and_test(&real->refs))
		return;
	l4lb_route_flush(real);
	call_rcu(&real->rcu, real_free_rcu);
}

static void real_name(struct l4lb_real_name *name,
		      const struct l4lb_service *svc,
		      const struct l4lb_dest_config *cfg)
{
	*name = (struct l4lb_real_name) {
		.svc	= svc->key,
		.addr	= cfg->addr,
		.port	= cfg->port,
		.af	= cfg->af,
	};
}

/* A real server without a service; the caller owns the reference. */
static struct l4lb_real *real_create(struct l4lb_service *svc,
				     const struct l4lb_dest_config *cfg)
{
	struct l4lb_real *real;

	real = kzalloc(sizeof(*real), GFP_KERNEL);
	if (!real)
		return NULL;
	if (l4lb_stats_init(&real->stats,
			    !READ_ONCE(svc->ln->sysctl.run_estimation))) {
		kfree(real);
		return NULL;
	}
	real->dest.addr = cfg->addr;
	real->dest.port = cfg->port;
	real->dest.af = cfg->af;
	real_name(&real->name, svc, cfg);
	real->ln = svc->ln;
	spin_lock_init(&real->route_lock);
	refcount_set(&real->refs, 1);
	INIT_LIST_HEAD(&real->node);
	if (l4lb_real_name_add(real)) {
		l4lb_stats_destroy(&real->stats);
		kfree(real);
		return NULL;
	}
	return real;
}

/* In the service or in the trash. */
static struct l4lb_real *real_find(struct l4lb_service *svc,
				   const struct l4lb_dest_config *cfg)
{
	struct l4lb_real_name name;

	real_name(&name, svc, cfg);
	return l4lb_real_by_name(svc->ln, &name);
}

struct l4lb_real *l4lb_real_find(struct l4lb_service *svc,
				 const struct l4lb_dest_config *cfg)
{
	struct l4lb_real *real = real_find(svc, cfg);

	return real && real->available ? real : NULL;
}

/* ---- thresholds ---- */

/* Past @u_thresh connections it is overloaded, until there are less than
 * @l_thresh.  Levels, not edges: CPUs that bind and unbind at once may write
 * in any order, so whoever changes the flag looks again.  The caller's change
 * is ordered before.
 */
static void real_check_thresholds(struct l4lb_real *real)
{
	u32 upper, lower, total;
	bool over;

	for (;;) {
		total = atomic_read(&real->dest.total);
		upper = READ_ONCE(real->u_thresh);
		lower = READ_ONCE(real->l_thresh) ?: upper - upper / 4;
		if (!upper || total < lower)
			over = false;
		else if (total >= upper)
			over = true;
		else
			return;
		if (READ_ONCE(real->dest.overloaded) == over)
			return;
		WRITE_ONCE(real->dest.overloaded, over);
		smp_mb();	/* the flag before reading the levels again */
	}
}

void l4lb_real_bind(struct l4lb_real *real, bool template)
{
	if (template) {
		atomic_inc(&real->persist);
		return;
	}
	atomic_inc(&real->dest.total);
	smp_mb__after_atomic();	/* total before the flag */
	real_check_thresholds(real);
}

void l4lb_real_unbind(struct l4lb_real *real, bool template, bool active)
{
	if (template) {
		atomic_dec(&real->persist);
	} else {
		if (active)
			l4lb_real_active(real, false);
		atomic_dec(&real->dest.total);
		smp_mb__after_atomic();	/* total before the flag */
		real_check_thresholds(real);
	}
	l4lb_real_put(real);
}

/* ---- configuration ---- */

void l4lb_real_save(const struct l4lb_real *real, struct l4lb_dest_config *cfg)
{
	*cfg = (struct l4lb_dest_config) {
		.addr		= real->dest.addr,
		.port		= real->dest.port,
		.af		= real->dest.af,
		.method		= real->method,
		.weight		= real->dest.weight,
		.u_thresh	= real->u_thresh,
		.l_thresh	= real->l_thresh,
		.tun		= real->tun,
	};
}

void l4lb_real_apply(struct l4lb_real *real, const struct l4lb_dest_config *cfg)
{
	u8 method = cfg->method & IP_VS_CONN_F_FWD_MASK;

	WRITE_ONCE(real->tun.word, cfg->tun.word);
	if (real->method != method) {
		WRITE_ONCE(real->method, method);
		l4lb_route_flush(real);
	}
	WRITE_ONCE(real->dest.weight, cfg->weight);
	if (cfg->weight)
		WRITE_ONCE(real->dest.last_weight, cfg->weight);
	WRITE_ONCE(real->u_thresh, cfg->u_thresh);
	WRITE_ONCE(real->l_thresh, cfg->l_thresh);
	smp_mb();	/* levels before looking at them */
	real_check_thresholds(real);
}

static bool real_is_mixed(const struct l4lb_real *real)
{
	return real->dest.af != real->name.svc.af;
}

/* Into @svc: its connections live, a pool may have it already. */
void l4lb_real_enlist(struct l4lb_real *real, struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	list_move_tail(&real->node, &svc->dests);
	svc->n_dests++;
	svc->ln->n_mixed += real_is_mixed(real);
	rcu_assign_pointer(real->svc, svc);
	WRITE_ONCE(real->available, true);
}

/* Out of @svc and into the trash.  Pools that still have it skip it. */
void l4lb_real_retire(struct l4lb_real *real, struct l4lb_service *svc)
{
	struct l4lb_net *ln = svc->ln;

	WRITE_ONCE(real->on_loss, svc->policy.on_loss);
	WRITE_ONCE(real->available, false);
	WRITE_ONCE(real->dest.weight, 0);
	RCU_INIT_POINTER(real->svc, NULL);
	l4lb_real_table_del(real);
	svc->n_dests--;
	ln->n_mixed -= real_is_mixed(real);
	l4lb_hook_unregister(ln, real->dest.af);
	real->trashed = jiffies;
	list_move_tail(&real->node, &ln->trash);
	if (!ln->exiting)
		queue_delayed_work(system_power_efficient_wq, &ln->trash_work,
				   TRASH_SWEEP);
}

/* What is in the trash stays there. */
static void real_forget_unused(struct l4lb_real *real)
{
	if (!list_empty(&real->node))
		return;
	l4lb_real_name_del(real);
	l4lb_real_put(real);
}

/* Made, or found in the trash; packets see nothing of it. */
static struct l4lb_real *real_prepare_new(struct l4lb_service *svc,
					  const struct l4lb_dest_config *cfg,
					  struct netlink_ext_ack *extack)
{
	struct l4lb_real *real;
	int err;

	err = l4lb_hook_register(svc->ln, cfg->af);
	if (err) {
		NL_SET_ERR_MSG(extack, "the netfilter hooks could not be registered");
		return ERR_PTR(err);
	}
	real = real_find(svc, cfg) ?: real_create(svc, cfg);
	if (real && !l4lb_real_table_add(real))
		return real;
	NL_SET_ERR_MSG(extack, "no memory for the real server");
	l4lb_hook_unregister(svc->ln, cfg->af);
	if (real)
		real_forget_unused(real);
	return ERR_PTR(-ENOMEM);
}

/**
 * l4lb_real_prepare() - the real server that a configuration means
 * @svc: its service, which need not be at work yet
 * @cfg: the real server
 * @extack: gets a sentence on failure
 *
 * Return: one that @svc has, or one to enlist or release, or an ERR_PTR() with
 * nothing changed.
 */
struct l4lb_real *l4lb_real_prepare(struct l4lb_service *svc,
				    const struct l4lb_dest_config *cfg,
				    struct netlink_ext_ack *extack)
{
	struct l4lb_real *real = l4lb_real_find(svc, cfg);
	int err;

	err = dest_check(svc, real, cfg, !real, extack);
	if (err)
		return ERR_PTR(err);
	return real ?: real_prepare_new(svc, cfg, extack);
}

/* The opposite, unless it was enlisted. */
void l4lb_real_release(struct l4lb_real *real)
{
	if (!l4lb_real_is_new(real))
		return;
	l4lb_real_table_del(real);
	l4lb_hook_unregister(real->ln, real->dest.af);
	real_forget_unused(real);
}

/**
 * l4lb_real_add() - add a real server to a service, or revive a removed one
 * @svc: the service
 * @cfg: the real server
 * @extack: gets a sentence on failure
 *
 * Return: 0 or a negative errno with nothing changed.
 */
int l4lb_real_add(struct l4lb_service *svc, const struct l4lb_dest_config *cfg,
		  struct netlink_ext_ack *extack)
{
	struct l4lb_real *real = l4lb_real_find(svc, cfg);
	int err;

	err = dest_check(svc, real, cfg, true, extack);
	if (err)
		return err;
	real = real_prepare_new(svc, cfg, extack);
	if (IS_ERR(real))
		return PTR_ERR(real);
	l4lb_real_apply(real, cfg);
	l4lb_real_enlist(real, svc);
	err = l4lb_service_rebuild(svc);
	if (err) {
		NL_SET_ERR_MSG(extack, "the scheduler could not take the real server");
		l4lb_real_retire(real, svc);
		return err;
	}
	return 0;
}

/**
 * l4lb_real_edit() - change a real server
 * @svc: its service
 * @real: what l4lb_real_find() found; NULL is refused in its turn, after the
 *	checks of @cfg that come first
 * @cfg: all its settings, new and kept; address, port and family are its own
 * @extack: gets a sentence on failure
 *
 * Return: 0, -ENOENT without @real, or a negative errno with nothing changed.
 */
int l4lb_real_edit(struct l4lb_service *svc, struct l4lb_real *real,
		   const struct l4lb_dest_config *cfg,
		   struct netlink_ext_ack *extack)
{
	struct l4lb_dest_config old;
	int last_weight, err;

	lockdep_assert_held(&svc->ln->lock);
	err = dest_check(svc, real, cfg, false, extack);
	if (err)
		return err;
	l4lb_real_save(real, &old);
	last_weight = real->dest.last_weight;
	l4lb_real_apply(real, cfg);
	err = l4lb_service_rebuild(svc);
	if (err) {
		NL_SET_ERR_MSG(extack, "the scheduler could not take the change");
		l4lb_real_apply(real, &old);
		WRITE_ONCE(real->dest.last_weight, last_weight);
		return err;
	}
	return 0;
}

/**
 * l4lb_real_del() - remove a real server from its service
 * @svc: the service
 * @real: what l4lb_real_find() found, or NULL
 * @extack: gets a warning when the scheduler could not follow
 *
 * Its connections stay; see the head of this file.
 *
 * Whoever wants a server out must get it out, so a scheduler that fails (no
 * memory) does not hinder.  The pool that stays has a server of weight 0 then,
 * which is chosen by nobody, until the next change builds one without it.
 *
 * Return: 0, or -ENOENT without @real.
 */
int l4lb_real_del(struct l4lb_service *svc, struct l4lb_real *real,
		  struct netlink_ext_ack *extack)
{
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	if (!real)
		return -ENOENT;
	l4lb_real_retire(real, svc);
	if (l4lb_service_rebuild(svc)) {
		NL_SET_ERR_MSG(extack,
			       "removed, but the scheduler missed it: weight 0 for now");
		pr_warn("scheduler %s missed a server's removal: weight 0 until the next change\n",
			l4lb_service_sched_name(svc));
	}
	if (READ_ONCE(ln->sysctl.expire_nodest_conn))
		l4lb_conn_expire_nodest(ln);
	return 0;
}

void l4lb_real_del_all(struct l4lb_service *svc)
{
	struct l4lb_real *real, *next;

	lockdep_assert_held(&svc->ln->lock);
	list_for_each_entry_safe(real, next, &svc->dests, node)
		l4lb_real_retire(real, svc);
}

/* ---- nobody ---- */

static struct l4lb_real *bypass_create(struct l4lb_net *ln, u16 af)
{
	struct l4lb_real *real = kzalloc(sizeof(*real), GFP_KERNEL);

	if (!real)
		return NULL;
	real->dest.af = af;
	real->dest.weight = 1;
	real->method = IP_VS_CONN_F_BYPASS;
	real->available = true;
	real->ln = ln;
	spin_lock_init(&real->route_lock);
	refcount_set(&real->refs, 1);
	INIT_LIST_HEAD(&real->node);
	return real;
}

/* One a family, with the first service, until the namespace goes.  It belongs
 * to no service, so what goes by it is counted nowhere.
 */
int l4lb_real_bypass_create(struct l4lb_net *ln)
{
	lockdep_assert_held(&ln->lock);
	if (!ln->bypass[0])
		ln->bypass[0] = bypass_create(ln, AF_INET);
	if (!ln->bypass[1])
		ln->bypass[1] = bypass_create(ln, AF_INET6);
	return ln->bypass[0] && ln->bypass[1] ? 0 : -ENOMEM;
}

/* After the last connection. */
void l4lb_real_bypass_destroy(struct l4lb_net *ln)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(ln->bypass); i++)
		if (ln->bypass[i])
			l4lb_real_put(ln->bypass[i]);
}

/* ---- trash ---- */

void l4lb_real_set_loss(const struct l4lb_service *svc)
{
	struct l4lb_real *real;

	lockdep_assert_held(&svc->ln->lock);
	list_for_each_entry(real, &svc->ln->trash, node)
		if (!memcmp(&real->name.svc, &svc->key, sizeof(svc->key)))
			WRITE_ONCE(real->on_loss, svc->policy.on_loss);
}

void l4lb_real_set_loss_named(struct l4lb_net *ln)
{
	const struct l4lb_service *svc;
	struct l4lb_real *real;

	lockdep_assert_held(&ln->lock);
	list_for_each_entry(real, &ln->trash, node) {
		svc = l4lb_service_find(ln, &real->name.svc);
		if (svc && svc->named)
			WRITE_ONCE(real->on_loss, svc->policy.on_loss);
	}
}

/* Who refers to @real only from here is found by nobody else, because pools
 * and connections would count.
 */
static bool trash_expired(struct l4lb_real *real)
{
	if (refcount_read(&real->refs) > 1) {
		real->trashed = jiffies;
		return false;
	}
	return time_after_eq(jiffies, real->trashed + TRASH_IDLE);
}

static void trash_sweep(struct work_struct *work)
{
	struct l4lb_net *ln = container_of(to_delayed_work(work),
					   struct l4lb_net, trash_work);
	struct l4lb_real *real, *next;

	mutex_lock(&ln->lock);
	list_for_each_entry_safe(real, next, &ln->trash, node) {
		if (!trash_expired(real))
			continue;
		list_del(&real->node);
		l4lb_real_name_del(real);
		l4lb_real_put(real);
	}
	if (!list_empty(&ln->trash) && !ln->exiting)
		queue_delayed_work(system_power_efficient_wq, &ln->trash_work,
				   TRASH_SWEEP);
	mutex_unlock(&ln->lock);
}

void l4lb_real_trash_init(struct l4lb_net *ln)
{
	INIT_LIST_HEAD(&ln->trash);
	INIT_DELAYED_WORK(&ln->trash_work, trash_sweep);
}

/* The namespace is going and has no services any more: forget them all.
 * Takes the configuration mutex.
 */
void l4lb_real_trash_flush(struct l4lb_net *ln)
{
	struct l4lb_real *real, *next;

	cancel_delayed_work_sync(&ln->trash_work);
	mutex_lock(&ln->lock);
	list_for_each_entry_safe(real, next, &ln->trash, node) {
		list_del(&real->node);
		l4lb_real_name_del(real);
		l4lb_real_put(real);
	}
	mutex_unlock(&ln->lock);
}

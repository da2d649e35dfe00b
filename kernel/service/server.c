// SPDX-License-Identifier: GPL-2.0
/*
 * Real servers: lifetime, settings and thresholds.
 *
 *	          add                     del
 *	(nothing) ----> in a service  <--------->  in the trash ----> freed
 *	                 available       add        unreferenced for two
 *	                                            minutes
 *
 * A removed server keeps its connections, which hold references on it: if it is
 * added again to a service with the same identity before it is freed, the same
 * object is revived with its counters, and the connections go on.
 *
 * With expire_nodest_conn they are over instead, all at once: packets and
 * listings pass over them, and work that holds no lock removes them from the
 * table.  If the server is added again before that is done, another object, its
 * heir, gets its name and its counters.
 *
 * References are held by the list it is in (service or trash) and by each
 * connection.  Pools hold none, see pool.c.
 */
#include "service/server.h"
#include "service/latency.h"
#include "service/route.h"
#include "service/server_table.h"
#include "service/tunnel_table.h"

#include <linux/sched.h>
#include <linux/slab.h>

#define TRASH_SWEEP	(60 * HZ)
#define TRASH_IDLE	(120 * HZ)
#define PLACEHOLDER_IDLE (1 * HZ)	/* its first connection is to come */

/* ---- lifetime ---- */

static void server_free_rcu(struct rcu_head *rcu)
{
	struct l4lb_server *server = container_of(rcu, struct l4lb_server, rcu);

	l4lb_latency_free(server);
	l4lb_stats_destroy(&server->stats);
	kfree(server);
}

/* The counters stay until RCU readers of connections to @server are done.  The
 * routes can go at once: @server left its service long ago, so no packet fills
 * the cache again.
 */
void l4lb_server_put(struct l4lb_server *server)
{
	struct l4lb_server *ghost;

	if (!refcount_dec_and_test(&server->refs))
		return;
	/* Nobody else has @server. */
	ghost = rcu_dereference_protected(server->ghost, true);
	if (unlikely(ghost))
		l4lb_server_put(ghost);
	l4lb_route_flush(server);
	call_rcu(&server->rcu, server_free_rcu);
}

static void server_name(struct l4lb_server_name *name,
			const struct l4lb_service *svc,
			const struct l4lb_server_config *cfg)
{
	*name = (struct l4lb_server_name) {
		.svc	= svc->key,
		.addr	= cfg->addr,
		.port	= cfg->port,
		.af	= cfg->af,
	};
}

/* A new real server, not yet in a service; the caller owns the reference.
 * @old: the one that has its name, or NULL.
 */
static struct l4lb_server *server_create(struct l4lb_net *ln,
					 const struct l4lb_server_name *name,
					 u8 method, struct l4lb_server *old)
{
	struct l4lb_server *server;

	server = kzalloc(sizeof(*server), GFP_KERNEL_ACCOUNT);
	if (!server)
		return NULL;
	if (l4lb_stats_init_late(&server->stats,
				 !READ_ONCE(ln->sysctl.run_estimation)))
		goto free;
	server->sched.addr = name->addr;
	server->sched.port = name->port;
	server->sched.af = name->af;
	server->name = *name;
	server->method = method;
	server->ln = ln;
	server->latency_tried = (u32)jiffies - 1;
	refcount_set(&server->refs, 1);
	INIT_LIST_HEAD(&server->node);
	INIT_LIST_HEAD(&server->lost);
	INIT_LIST_HEAD(&server->watch.draining);
	server->heir_of = old;
	if (l4lb_tunnel_add(server))
		goto destroy;
	if (old) {
		server->service_id = old->service_id;
		server->sched.last_weight = old->sched.last_weight;
	} else if (l4lb_server_name_add(server)) {
		goto tunnel_del;
	}
	return server;

tunnel_del:
	l4lb_tunnel_del(server);
destroy:
	l4lb_stats_destroy(&server->stats);
free:
	kfree(server);
	return NULL;
}

/* A real server that is in @svc, or NULL. */
struct l4lb_server *l4lb_server_find(struct l4lb_service *svc,
				     const struct l4lb_server_config *cfg)
{
	struct l4lb_server_name name;
	struct l4lb_server *server;

	server_name(&name, svc, cfg);
	server = l4lb_server_by_name(svc->ln, &name);
	return server && server->available ? server : NULL;
}

static bool has_conns(const struct l4lb_server *server)
{
	return atomic_read(&server->sched.total) ||
	       atomic_read(&server->persist);
}

/**
 * l4lb_server_obtain() - a real server that is to be added to a service
 * @svc: the service, which has no such server
 * @cfg: its settings
 *
 * Context: configuration mutex held, may sleep.
 * Return: one that is in the trash; or a new one, for l4lb_server_untrash() or
 * l4lb_server_forget(); or NULL without memory.
 */
struct l4lb_server *l4lb_server_obtain(struct l4lb_service *svc,
				       const struct l4lb_server_config *cfg)
{
	u8 method = cfg->method & IP_VS_CONN_F_FWD_MASK;
	struct l4lb_server_name name;
	struct l4lb_server *old;

	server_name(&name, svc, cfg);
	old = l4lb_server_by_name(svc->ln, &name);
	if (old && old->over && !has_conns(old))
		WRITE_ONCE(old->over, false);
	return old && !old->over ? old :
				   server_create(svc->ln, &name, method, old);
}

static void into_trash(struct l4lb_server *server)
{
	struct l4lb_net *ln = server->ln;

	server->trashed = jiffies;
	list_move_tail(&server->node, &ln->trash);
	if (!ln->exiting)
		queue_delayed_work(system_power_efficient_wq, &ln->trash_work,
				   TRASH_SWEEP);
}

static void unmark_placeholder(struct l4lb_server *server)
{
	struct l4lb_net *ln = server->ln;

	if (!server->placeholder)
		return;
	WRITE_ONCE(server->placeholder, false);
	WRITE_ONCE(ln->n_placeholders, ln->n_placeholders - 1);
}

/**
 * l4lb_server_foresee() - have a placeholder for a real server
 * @ln: namespace
 * @name: of the real server, which was not added yet
 * @method: of its connections
 *
 * Another director has connections to it.  A placeholder is as a removed real
 * server: nothing is forwarded to it, and l4lb_server_obtain() finds it when the
 * real server is added.  It goes with its last connection.
 *
 * Context: configuration mutex held, may sleep.
 * Return: 0; -EEXIST, the name is taken; -ENOSPC, there are
 * %L4LB_PLACEHOLDERS_MAX; -ENOMEM.
 */
int l4lb_server_foresee(struct l4lb_net *ln,
			const struct l4lb_server_name *name, u8 method)
{
	struct l4lb_server *server;

	lockdep_assert_held(&ln->lock);
	if (l4lb_server_by_name(ln, name))
		return -EEXIST;
	if (ln->exiting || ln->n_placeholders >= L4LB_PLACEHOLDERS_MAX)
		return -ENOSPC;
	server = server_create(ln, name, method, NULL);
	if (!server)
		return -ENOMEM;
	WRITE_ONCE(server->placeholder, true);
	WRITE_ONCE(ln->n_placeholders, ln->n_placeholders + 1);
	into_trash(server);
	return 0;
}

/* Frees a real server, or leaves that to its last connection. */
void l4lb_server_forget(struct l4lb_server *server)
{
	unmark_placeholder(server);
	list_del_init(&server->node);
	list_del_init(&server->lost);
	if (!server->nameless && !server->heir_of)
		l4lb_server_name_del(server);
	l4lb_tunnel_del(server);
	l4lb_server_put(server);
}

/* ---- thresholds ---- */

/* A server is overloaded from @u_thresh connections on, until it has fewer than
 * @l_thresh.  CPUs that bind and unbind at once may write the flag in any
 * order, so a CPU that changes it checks the levels again.  The caller orders
 * its own change before the call.
 */
void l4lb_server_check_thresholds(struct l4lb_server *server)
{
	u32 upper, lower, total;
	bool over;

	for (;;) {
		total = atomic_read(&server->sched.total);
		upper = READ_ONCE(server->u_thresh);
		lower = READ_ONCE(server->l_thresh) ?: upper - upper / 4;
		if (!upper || total < lower)
			over = false;
		else if (total >= upper)
			over = true;
		else
			return;
		if (READ_ONCE(server->sched.overloaded) == over)
			return;
		WRITE_ONCE(server->sched.overloaded, over);
		smp_mb();	/* write the flag before reading the levels */
		l4lb_event_note(server);
	}
}

/* Its last connection or template has gone. */
static void server_idle(struct l4lb_server *server)
{
	if (READ_ONCE(server->drains))
		l4lb_event_note(server);
}

void l4lb_server_unbind(struct l4lb_server *server, bool template, bool active)
{
	if (template) {
		if (atomic_dec_and_test(&server->persist))
			server_idle(server);
	} else {
		if (active)
			atomic_dec(&server->sched.active);
		/* A full barrier: write total before reading flag. */
		if (atomic_dec_and_test(&server->sched.total))
			server_idle(server);
		l4lb_server_counted(server);
	}
	l4lb_server_put(server);
}

/* ---- configuration ---- */

void l4lb_server_save(const struct l4lb_server *server,
		      struct l4lb_server_config *cfg)
{
	*cfg = (struct l4lb_server_config) {
		.addr		= server->sched.addr,
		.port		= server->sched.port,
		.af		= server->sched.af,
		.method		= server->method,
		.weight		= server->sched.weight,
		.u_thresh	= server->u_thresh,
		.l_thresh	= server->l_thresh,
		.tun		= server->tun,
	};
}

void l4lb_server_apply(struct l4lb_server *server,
		       const struct l4lb_server_config *cfg)
{
	u8 method = cfg->method & IP_VS_CONN_F_FWD_MASK;

	WRITE_ONCE(server->tun.word, cfg->tun.word);
	WRITE_ONCE(server->method, method);
	if (method != IP_VS_CONN_F_MASQ)
		l4lb_latency_forget(server);
	l4lb_tunnel_update(server);
	l4lb_server_set_weight(server, cfg->weight);
	if (cfg->weight)
		WRITE_ONCE(server->sched.last_weight, cfg->weight);
	WRITE_ONCE(server->u_thresh, cfg->u_thresh);
	WRITE_ONCE(server->l_thresh, cfg->l_thresh);
	l4lb_server_table_update(server);
	smp_mb();	/* write the levels before reading the flag */
	l4lb_server_check_thresholds(server);
	if (!cfg->weight || cfg->u_thresh || server->watch.overloaded)
		l4lb_event_note(server);
	l4lb_server_reweighed(server);
}

static void tell_ghost(const struct l4lb_server *server, struct l4lb_server *ghost)
{
	WRITE_ONCE(ghost->available, server->available);
	WRITE_ONCE(ghost->sched.weight, server->sched.weight);
	WRITE_ONCE(ghost->sched.last_weight, server->sched.last_weight);
	WRITE_ONCE(ghost->u_thresh, server->u_thresh);
	WRITE_ONCE(ghost->l_thresh, server->l_thresh);
	smp_mb();	/* write them before reading the flag and the match */
	l4lb_server_check_thresholds(ghost);
	l4lb_server_changed(ghost);
}

/* Tells its pool, and its shadow's, of a new weight or new thresholds.  Configuration
 * mutex held.
 */
void l4lb_server_reweighed(struct l4lb_server *server)
{
	struct l4lb_server *ghost;

	ghost = rcu_dereference_protected(server->ghost,
					  lockdep_is_held(&server->ln->lock));
	smp_mb();	/* write the weight before reading the match */
	rcu_read_lock();
	l4lb_server_changed(server);
	if (unlikely(ghost))
		tell_ghost(server, ghost);
	rcu_read_unlock();
}

/* ---- bypass ---- */

static struct l4lb_server *bypass_create(struct l4lb_net *ln, u16 af)
{
	struct l4lb_server *server = kzalloc(sizeof(*server), GFP_KERNEL_ACCOUNT);

	if (!server)
		return NULL;
	server->sched.af = af;
	server->sched.weight = 1;
	server->method = IP_VS_CONN_F_BYPASS;
	server->available = true;
	server->ln = ln;
	refcount_set(&server->refs, 1);
	INIT_LIST_HEAD(&server->node);
	INIT_LIST_HEAD(&server->lost);
	INIT_LIST_HEAD(&server->watch.draining);
	return server;
}

/* One for each family, from the first service until the namespace goes.  They
 * belong to no service, so their packets are counted nowhere.
 */
int l4lb_server_bypass_create(struct l4lb_net *ln)
{
	lockdep_assert_held(&ln->lock);
	if (!ln->bypass[0])
		ln->bypass[0] = bypass_create(ln, AF_INET);
	if (!ln->bypass[1])
		ln->bypass[1] = bypass_create(ln, AF_INET6);
	return ln->bypass[0] && ln->bypass[1] ? 0 : -ENOMEM;
}

/* Call it after the last connection. */
void l4lb_server_bypass_destroy(struct l4lb_net *ln)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(ln->bypass); i++)
		if (ln->bypass[i])
			l4lb_server_put(ln->bypass[i]);
}

/* ---- trash ---- */

/* If ours is the last reference, no connection can reach @server. */
static bool trash_expired(struct l4lb_server *server)
{
	if (refcount_read(&server->refs) > 1 || server->stuck) {
		server->trashed = jiffies;
		return false;
	}
	return time_after_eq(jiffies, server->trashed + (server->placeholder ?
							PLACEHOLDER_IDLE :
							TRASH_IDLE));
}

static void trash_sweep(struct work_struct *work)
{
	struct l4lb_net *ln = container_of(to_delayed_work(work),
					   struct l4lb_net, trash_work);
	struct l4lb_server *server, *next;

	mutex_lock(&ln->lock);
	list_for_each_entry_safe(server, next, &ln->trash, node) {
		if (trash_expired(server))
			l4lb_server_forget(server);
		cond_resched();
	}
	if (!list_empty(&ln->trash) && !ln->exiting)
		queue_delayed_work(system_power_efficient_wq, &ln->trash_work,
				   TRASH_SWEEP);
	mutex_unlock(&ln->lock);
}

/* @server has left its service.  Configuration mutex held. */
void l4lb_server_trash(struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	into_trash(server);
	list_add_tail(&server->lost, &server->ln->lost);
}

/* @server is about to work in a service.  Configuration mutex held. */
void l4lb_server_untrash(struct l4lb_server *server)
{
	struct l4lb_server *old = server->heir_of;

	lockdep_assert_held(&server->ln->lock);
	unmark_placeholder(server);
	list_del_init(&server->lost);
	if (!old)
		return;
	l4lb_server_name_pass(old, server);
	old->nameless = true;
	server->heir_of = NULL;
	l4lb_stats_inherit(&server->stats, &old->stats);
	server->latency = xchg(&old->latency, NULL);
	server->sched.latency = READ_ONCE(old->sched.latency);
}

static void unstick(struct list_head *servers, const struct l4lb_service *svc)
{
	struct l4lb_server *server;

	list_for_each_entry(server, servers, node) {
		if (!server->stuck || memcmp(&server->name.svc, &svc->key,
					     sizeof(svc->key)))
			continue;
		server->stuck = false;
		server->trashed = jiffies;
	}
}

/* @svc has another pool, or is gone.  Configuration mutex held. */
void l4lb_server_unstick(struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	if (likely(!svc->stuck))
		return;
	svc->stuck = false;
	unstick(&svc->servers, svc);
	unstick(&svc->ln->trash, svc);
}

/* Set on_loss of a removed real server.  Configuration mutex held. */
void l4lb_server_set_on_loss(struct l4lb_server *server, u8 on_loss)
{
	lockdep_assert_held(&server->ln->lock);
	if (server->on_loss == on_loss || server->placeholder ||
	    server->watch.own_loss)
		return;
	WRITE_ONCE(server->on_loss, on_loss);
	list_move_tail(&server->lost, &server->ln->lost);
}

/**
 * l4lb_server_end_conns() - end the connections of removed real servers
 * @ln: namespace, with expire_nodest_conn; a real server was just removed
 *
 * Those with an explicit on_loss are left out: the next packet of a connection
 * decides, see hook.c.  Each removed server is looked at once.
 *
 * Context: configuration mutex held.
 * Return: true if there are connections to be removed from the table, see
 * l4lb_conn_remove_over().
 */
bool l4lb_server_end_conns(struct l4lb_net *ln)
{
	struct l4lb_server *server, *next;
	bool any = false;

	lockdep_assert_held(&ln->lock);
	list_for_each_entry_safe(server, next, &ln->lost, lost) {
		cond_resched();
		list_del_init(&server->lost);
		if (server->on_loss != L4LB_LOSS_DEFAULT)
			continue;
		WRITE_ONCE(server->over, true);
		any |= has_conns(server);
	}
	return any;
}

void l4lb_server_trash_init(struct l4lb_net *ln)
{
	INIT_LIST_HEAD(&ln->trash);
	INIT_LIST_HEAD(&ln->lost);
	INIT_DELAYED_WORK(&ln->trash_work, trash_sweep);
}

/* The namespace is going and has no services any more: empty the trash.
 * Takes the configuration mutex.
 */
void l4lb_server_trash_flush(struct l4lb_net *ln)
{
	struct l4lb_server *server, *next;

	cancel_delayed_work_sync(&ln->trash_work);
	mutex_lock(&ln->lock);
	list_for_each_entry_safe(server, next, &ln->trash, node) {
		l4lb_server_forget(server);
		cond_resched();
	}
	mutex_unlock(&ln->lock);
}

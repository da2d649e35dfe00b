// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of the real servers of a service.  Each is a transaction: steps that
 * can fail come first, and a failure undoes them.
 */
#include "config/server_edit.h"

#include <linux/inetdevice.h>
#include <linux/netlink.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "config/helper.h"
#include "config/ramp.h"
#include "conn/table.h"
#include "entry/hook.h"
#include "service/latency.h"
#include "service/pool.h"
#include "service/ramp.h"
#include "service/range.h"
#include "service/server_table.h"
#include "sync/daemon.h"

/* ---- checks, in the order user space relies on ---- */

/* Check @cfg by itself. */
static int server_check_config(const struct l4lb_service *svc,
			       const struct l4lb_server_config *cfg,
			       struct netlink_ext_ack *extack)
{
	u32 method = cfg->method & IP_VS_CONN_F_FWD_MASK;

	if (cfg->af != svc->key.af && l4lb_sync_runs(svc->ln)) {
		NL_SET_ERR_MSG(extack,
			       "families cannot be mixed while a sync daemon runs: stop it");
		return -EINVAL;
	}
	if (cfg->af != svc->key.af && method != IP_VS_CONN_F_TUNNEL) {
		NL_SET_ERR_MSG(extack, "a server of the other family needs method tunnel");
		return -EINVAL;
	}
	if (l4lb_key_is_range(&svc->key) &&
	    l4lb_key_has_vip(&svc->key, cfg->af, &cfg->addr)) {
		NL_SET_ERR_MSG(extack, "the real server's address is in the range of the service");
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

static int server_check_ipv4(struct net *net, __be32 addr,
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
static int server_check_ipv6(struct net *net, const struct in6_addr *addr,
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

/* @server: found by l4lb_server_find(), or NULL; @add: it must not exist. */
static int server_check(const struct l4lb_service *svc,
			const struct l4lb_server *server,
			const struct l4lb_server_config *cfg, bool add,
			struct netlink_ext_ack *extack)
{
	struct net *net = svc->ln->net;
	int err;

	err = server_check_config(svc, cfg, extack);
	if (err)
		return err;
	if (add && server) {
		NL_SET_ERR_MSG(extack, "the service has this real server already: edit it");
		return -EEXIST;
	}
	if (!add && !server) {
		NL_SET_ERR_MSG(extack, "the service has no such real server: add it");
		return -ENOENT;
	}
	if (add) {
		if (cfg->af == AF_INET)
			err = server_check_ipv4(net, cfg->addr.ip, extack);
		else
			err = server_check_ipv6(net, &cfg->addr.in6, extack);
		if (err)
			return err;
	}
	return 0;
}

/* ---- adding to a service and removing from it ---- */

static bool server_is_mixed(const struct l4lb_server *server)
{
	return server->sched.af != server->name.svc.af;
}

/* Add to @svc: its connections work from now on; a pool may have it already. */
void l4lb_server_enlist(struct l4lb_server *server, struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	l4lb_server_untrash(server);
	/* A service that was made anew has new counters, and so have its servers. */
	if (server->service_id && server->service_id != svc->id) {
		l4lb_stats_zero(&server->stats);
		l4lb_latency_zero(server);
		l4lb_latency_forget(server);
	}
	if (svc->policy.latency)
		l4lb_latency_prepare(server);
	else
		l4lb_latency_forget(server);
	server->service_id = svc->id;
	list_move_tail(&server->node, &svc->servers);
	svc->n_servers++;
	WRITE_ONCE(svc->ln->n_mixed,
		   svc->ln->n_mixed + server_is_mixed(server));
	rcu_assign_pointer(server->svc, svc);
	l4lb_server_table_update(server);
	l4lb_stats_look(&server->stats);
	WRITE_ONCE(server->available, true);
	server->watch.overloaded = false;
	server->watch.drained = false;
	server->watch.own_loss = false;
}

/* Move from @svc to the trash.  Pools that still have the server skip it. */
void l4lb_server_retire(struct l4lb_server *server, struct l4lb_service *svc)
{
	struct l4lb_net *ln = svc->ln;

	l4lb_ramp_end(server);
	list_del_init(&server->watch.draining);
	server->watch.then = L4LB_THEN_STAY;
	if (!server->watch.own_loss)
		WRITE_ONCE(server->on_loss, svc->policy.on_loss);
	WRITE_ONCE(server->available, false);
	l4lb_server_set_weight(server, 0);
	l4lb_server_reweighed(server);
	l4lb_server_table_leave(server, svc);
	svc->n_servers--;
	WRITE_ONCE(ln->n_mixed, ln->n_mixed - server_is_mixed(server));
	l4lb_hook_unregister(ln, server->sched.af);
	l4lb_server_trash(server);
}

/* The settings of @server are final.  It had the settings @old, or was in no service
 * (NULL).
 */
void l4lb_server_settled(struct l4lb_server *server,
			 const struct l4lb_server_config *old)
{
	struct l4lb_happening event = { .server = server };

	/* A weight ends a drain. */
	if (server->sched.weight) {
		list_del_init(&server->watch.draining);
		server->watch.then = L4LB_THEN_STAY;
		server->watch.drained = false;
	} else {
		l4lb_ramp_end(server);
	}
	if (IS_ENABLED(CONFIG_NF_CONNTRACK) && server->method == IP_VS_CONN_F_MASQ)
		l4lb_service_help(rcu_dereference_protected(server->svc,
							    lockdep_is_held(&server->ln->lock)));

	if (!old)
		event.what = L4LB_EVENT_SERVER_ADDED;
	else if (old->weight != server->sched.weight)
		event.what = L4LB_EVENT_WEIGHT;
	else if (old->method != server->method ||
		 old->u_thresh != server->u_thresh ||
		 old->l_thresh != server->l_thresh ||
		 old->tun.word != server->tun.word)
		event.what = L4LB_EVENT_SERVER_CHANGED;
	else
		return;
	if (old)
		event.count = old->weight;
	l4lb_event(server->ln, &event);
}

/* A server that is in the trash stays there. */
static void server_forget_unused(struct l4lb_server *server)
{
	if (list_empty(&server->node))
		l4lb_server_forget(server);
}

/* Create the server, or find it in the trash; packets do not see it yet. */
static struct l4lb_server *server_prepare_new(struct l4lb_service *svc,
					      const struct l4lb_server_config *cfg,
					      struct netlink_ext_ack *extack)
{
	struct l4lb_server *server;
	int err;

	if (l4lb_at_limit(svc->ln->n_servers, &svc->ln->sysctl.servers_max)) {
		NL_SET_ERR_MSG(extack, "net.ipv4.vs.servers_max allows no more real servers");
		return ERR_PTR(-ENOSPC);
	}
	err = l4lb_hook_register(svc->ln, cfg->af);
	if (err) {
		NL_SET_ERR_MSG(extack, "the netfilter hooks could not be registered");
		return ERR_PTR(err);
	}
	server = l4lb_server_obtain(svc, cfg);
	if (server && !l4lb_server_table_add(server))
		return server;
	NL_SET_ERR_MSG(extack, "no memory for the real server");
	l4lb_hook_unregister(svc->ln, cfg->af);
	if (server)
		server_forget_unused(server);
	return ERR_PTR(-ENOMEM);
}

/**
 * l4lb_server_prepare() - find or create the real server of a configuration
 * @svc: its service, which need not be enlisted yet
 * @cfg: the real server
 * @extack: gets a sentence on failure
 *
 * Return: a real server of @svc, or a new one to enlist or release, or an
 * ERR_PTR() with nothing changed.
 */
struct l4lb_server *l4lb_server_prepare(struct l4lb_service *svc,
					const struct l4lb_server_config *cfg,
					struct netlink_ext_ack *extack)
{
	struct l4lb_server *server = l4lb_server_find(svc, cfg);
	int err;

	err = server_check(svc, server, cfg, !server, extack);
	if (err)
		return ERR_PTR(err);
	return server ?: server_prepare_new(svc, cfg, extack);
}

/* Undo l4lb_server_prepare(), unless the server is enlisted. */
void l4lb_server_release(struct l4lb_server *server)
{
	if (!l4lb_server_is_new(server))
		return;
	l4lb_server_table_del(server);
	l4lb_hook_unregister(server->ln, server->sched.af);
	server_forget_unused(server);
}

/**
 * l4lb_server_add() - add a real server to a service, or revive a removed one
 * @svc: the service
 * @cfg: the real server
 * @extack: gets a sentence on failure
 *
 * Return: 0 or a negative errno with nothing changed.
 */
int l4lb_server_add(struct l4lb_service *svc,
		    const struct l4lb_server_config *cfg,
		    struct netlink_ext_ack *extack)
{
	struct l4lb_server *server = l4lb_server_find(svc, cfg);
	int err;

	err = server_check(svc, server, cfg, true, extack);
	if (err)
		return err;
	server = server_prepare_new(svc, cfg, extack);
	if (IS_ERR(server))
		return PTR_ERR(server);
	l4lb_server_apply(server, cfg);
	if (cfg->weight && l4lb_ramp_applies(svc, server))
		l4lb_ramp_begin(server, svc);
	l4lb_server_enlist(server, svc);
	err = l4lb_service_grow(svc);
	if (err) {
		NL_SET_ERR_MSG(extack, "the scheduler could not take the real server");
		l4lb_server_retire(server, svc);
		return err;
	}
	l4lb_server_settled(server, NULL);
	return 0;
}

/**
 * l4lb_server_edit() - change a real server
 * @svc: its service
 * @server: result of l4lb_server_find(); NULL is refused, but only after the
 *	checks of @cfg that come first
 * @cfg: all its settings, new and kept; address, port and family do not change
 * @extack: gets a sentence on failure
 *
 * Return: 0, -ENOENT without @server, or a negative errno with nothing changed.
 */
int l4lb_server_edit(struct l4lb_service *svc, struct l4lb_server *server,
		     const struct l4lb_server_config *cfg,
		     struct netlink_ext_ack *extack)
{
	struct l4lb_server_config old;
	int last_weight, err;
	bool joins;

	lockdep_assert_held(&svc->ln->lock);
	err = server_check(svc, server, cfg, false, extack);
	if (err)
		return err;
	l4lb_server_save(server, &old);
	last_weight = server->sched.last_weight;
	joins = !old.weight && cfg->weight && l4lb_ramp_applies(svc, server);
	l4lb_server_apply(server, cfg);
	if (joins)
		l4lb_ramp_begin(server, svc);
	err = l4lb_service_reweigh(svc);
	if (err) {
		NL_SET_ERR_MSG(extack, "the scheduler could not take the change");
		if (joins)
			l4lb_ramp_end(server);
		l4lb_server_apply(server, &old);
		WRITE_ONCE(server->sched.last_weight, last_weight);
		return err;
	}
	l4lb_server_settled(server, &old);
	return 0;
}

/**
 * l4lb_server_del() - remove a real server from its service
 * @svc: the service
 * @server: result of l4lb_server_find(), may be NULL
 * @extack: gets a warning when the scheduler could not follow
 *
 * Its connections stay, see the head of service/server.c.
 *
 * Removal must always work, even if the scheduler fails (no memory).  The old
 * pool then still has the server, with weight 0, so it is not chosen, until the
 * next change builds a new pool.
 *
 * Return: 0, or -ENOENT without @server.
 */
int l4lb_server_del(struct l4lb_service *svc, struct l4lb_server *server,
		    struct netlink_ext_ack *extack)
{
	lockdep_assert_held(&svc->ln->lock);
	if (!server)
		return -ENOENT;
	l4lb_event_server(L4LB_EVENT_SERVER_DELETED, server);
	l4lb_server_retire(server, svc);
	if (l4lb_service_shrink(svc, server)) {
		NL_SET_ERR_MSG(extack,
			       "removed, but the scheduler missed it: weight 0 for now");
		pr_warn("scheduler %s missed a server's removal: weight 0 until the next change\n",
			l4lb_service_sched_name(svc));
	}
	l4lb_server_removed(svc->ln);
	return 0;
}

/* Servers or services were removed: may their connections stay? */
void l4lb_server_removed(struct l4lb_net *ln)
{
	if (READ_ONCE(ln->sysctl.expire_nodest_conn) &&
	    l4lb_server_end_conns(ln))
		l4lb_conn_remove_over(ln);
}

void l4lb_server_del_all(struct l4lb_service *svc)
{
	struct l4lb_server *server, *next;

	lockdep_assert_held(&svc->ln->lock);
	list_for_each_entry_safe(server, next, &svc->servers, node) {
		l4lb_server_retire(server, svc);
		if (svc->n_servers % 256 == 0)
			cond_resched();
	}
}

/* ---- policy for connections of removed servers ---- */

void l4lb_server_set_loss(const struct l4lb_service *svc)
{
	struct l4lb_server *server;

	lockdep_assert_held(&svc->ln->lock);
	list_for_each_entry(server, &svc->ln->trash, node)
		if (!memcmp(&server->name.svc, &svc->key, sizeof(svc->key)))
			l4lb_server_set_on_loss(server, svc->policy.on_loss);
}

void l4lb_server_set_loss_named(struct l4lb_net *ln)
{
	const struct l4lb_service *svc;
	struct l4lb_server *server;

	lockdep_assert_held(&ln->lock);
	list_for_each_entry(server, &ln->trash, node) {
		svc = l4lb_service_find(ln, &server->name.svc);
		if (svc && svc->named)
			l4lb_server_set_on_loss(server, svc->policy.on_loss);
	}
}

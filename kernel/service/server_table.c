// SPDX-License-Identifier: GPL-2.0
/*
 * Real servers by the address and port that they send from, for packets without
 * a connection.  All with the same source share one object, so that a packet,
 * and the removal of a real server, look at one, however many services the real
 * server is in.
 *
 * And real servers by name, for configuration and for records of other
 * directors, which read it under RCU.  Each is in that table once,
 * whether it is in a service or in the trash.
 */
#include "service/server_table.h"
#include "service/tunnel_table.h"

#include <linux/rculist.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>

/* Where packets to clients come from. */
struct source_key {
	union nf_inet_addr	addr;
	__be16			port;
	u8			af, proto;
};

/**
 * struct l4lb_source - an address and port that real servers send from
 * @node: in l4lb_net.sources
 * @key: the address and port; protocol 0: of services by firewall mark
 * @refs: real servers that refer to it
 * @n_nat: NATed real servers of services among them; read by packets
 * @stateless: those whose replies may have no connection, of one-packet services and
 *	of services with conn-state lazy; the newest first (RCU readers, who look at
 *	the first only)
 * @rcu: to free it
 */
struct l4lb_source {
	struct rhash_head	node;
	struct source_key	key;
	unsigned int		refs;
	unsigned int		n_nat;
	struct hlist_head	stateless;
	struct rcu_head		rcu;
};

static const struct rhashtable_params source_params = {
	.key_len	= sizeof(struct source_key),
	.key_offset	= offsetof(struct l4lb_source, key),
	.head_offset	= offsetof(struct l4lb_source, node),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

static const struct rhashtable_params name_params = {
	.key_len	= sizeof(struct l4lb_server_name),
	.key_offset	= offsetof(struct l4lb_server, name),
	.head_offset	= offsetof(struct l4lb_server, by_name),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

/* The keys are hashed and compared as bytes: they must not have holes. */
static_assert(sizeof(struct l4lb_server_name) ==
	      sizeof(struct l4lb_svc_key) + sizeof(union nf_inet_addr) +
	      sizeof(__be16) + sizeof(u16));
static_assert(sizeof(struct source_key) ==
	      sizeof(union nf_inet_addr) + sizeof(__be16) + 2 * sizeof(u8));

/* The object of this source, made when there is none; or NULL. */
static struct l4lb_source *source_get(struct l4lb_net *ln,
				      const struct source_key *key)
{
	struct l4lb_source *source;

	source = rhashtable_lookup_fast(&ln->sources, key, source_params);
	if (!source) {
		source = kzalloc(sizeof(*source), GFP_KERNEL_ACCOUNT);
		if (!source)
			return NULL;
		source->key = *key;
		if (rhashtable_insert_fast(&ln->sources, &source->node,
					   source_params)) {
			kfree(source);
			return NULL;
		}
	}
	source->refs++;
	return source;
}

/**
 * l4lb_server_table_add() - add a real server that is to get into a service
 * @server: the real server
 *
 * Packets see it once l4lb_server_table_update() has found it in its service.  In a service
 * with a range, one that keeps the port sends from any: it is not known by a port.
 *
 * Context: configuration mutex held, may sleep.
 * Return: 0 or -ENOMEM.
 */
int l4lb_server_table_add(struct l4lb_server *server)
{
	const struct l4lb_svc_key *svc = &server->name.svc;
	const struct source_key key = {
		.addr	= server->sched.addr,
		.port	= server->sched.port ?: svc->prefix_len ? 0 : svc->port,
		.af	= server->sched.af,
		.proto	= svc->protocol,
	};
	struct l4lb_source *source;

	lockdep_assert_held(&server->ln->lock);
	source = source_get(server->ln, &key);
	if (!source)
		return -ENOMEM;
	rcu_assign_pointer(server->source, source);
	server->ln->n_servers++;
	return 0;
}

static struct l4lb_source *source_of(const struct l4lb_server *server)
{
	return rcu_dereference_protected(server->source,
					 lockdep_is_held(&server->ln->lock));
}

static void set_kind(struct l4lb_server *server, bool nat, bool stateless)
{
	struct l4lb_source *source = source_of(server);

	if (nat != server->nat)
		WRITE_ONCE(source->n_nat, source->n_nat + (nat ? 1 : -1));
	server->nat = nat;
	if (stateless == !hlist_unhashed(&server->stateless))
		return;
	if (stateless)
		hlist_add_head_rcu(&server->stateless, &source->stateless);
	else
		hlist_del_init_rcu(&server->stateless);
}

/* May replies of a NATed real server of @svc have no connection? */
static bool is_stateless(const struct l4lb_service *svc)
{
	return svc->key.protocol == IPPROTO_UDP ?
	       svc->flags & IP_VS_SVC_F_ONEPACKET || l4lb_service_calls(svc) :
	       svc->policy.conn_state == L4LB_SERVICE_STATE_LAZY;
}

/* Counts @server among those of @svc that have an upper threshold, or no longer. */
static void set_capped(struct l4lb_server *server, struct l4lb_service *svc,
		       bool capped)
{
	if (capped == server->capped)
		return;
	server->capped = capped;
	WRITE_ONCE(svc->n_capped, svc->n_capped + (capped ? 1 : -1));
}

/**
 * l4lb_server_table_update() - tell packets what a real server is
 * @server: the real server; its service, the flags or the state of that, or its
 *	method or thresholds may have changed
 *
 * Context: configuration mutex held.
 */
void l4lb_server_table_update(struct l4lb_server *server)
{
	struct mutex *lock = &server->ln->lock;
	struct l4lb_service *svc;
	bool nat;

	svc = rcu_dereference_protected(server->svc, lockdep_is_held(lock));
	nat = svc && server->method == IP_VS_CONN_F_MASQ;
	if (source_of(server))
		set_kind(server, nat, nat && is_stateless(svc));
	if (svc)
		set_capped(server, svc, server->u_thresh);
}

/**
 * l4lb_server_table_leave() - a real server leaves its service
 * @server: the real server
 * @svc: its service
 *
 * Context: configuration mutex held.
 */
void l4lb_server_table_leave(struct l4lb_server *server, struct l4lb_service *svc)
{
	lockdep_assert_held(&server->ln->lock);
	set_capped(server, svc, false);
	RCU_INIT_POINTER(server->svc, NULL);
	l4lb_server_table_del(server);
}

/* Configuration mutex held.  Packets may find @server for a grace period. */
void l4lb_server_table_del(struct l4lb_server *server)
{
	struct l4lb_source *source = source_of(server);
	struct l4lb_net *ln = server->ln;

	lockdep_assert_held(&ln->lock);
	set_kind(server, false, false);
	RCU_INIT_POINTER(server->source, NULL);
	ln->n_servers--;
	l4lb_tunnel_unlist(server);
	if (--source->refs)
		return;
	rhashtable_remove_fast(&ln->sources, &source->node, source_params);
	kfree_rcu(source, rcu);
}

static struct l4lb_source *source_find(struct l4lb_net *ln,
				       const struct l4lb_flow *flow)
{
	const struct source_key key = {
		.addr	= flow->saddr,
		.port	= flow->sport,
		.af	= flow->af,
		.proto	= flow->proto,
	};

	return rhashtable_lookup(&ln->sources, &key, source_params);
}

/**
 * l4lb_server_is_source() - does a packet come from a NATed real server?
 * @ln: namespace
 * @flow: of the packet, real server to client
 *
 * Services by firewall mark are left out: they have no protocol and no port.
 *
 * Context: RCU.
 */
bool l4lb_server_is_source(struct l4lb_net *ln, const struct l4lb_flow *flow)
{
	const struct l4lb_source *source = source_find(ln, flow);

	return source && READ_ONCE(source->n_nat);
}

/**
 * l4lb_server_stateless() - the real server that a packet without a connection
 * comes from
 * @ln: namespace
 * @flow: of the packet, real server to client
 *
 * Context: RCU.
 * Return: one of a service with one-packet scheduling, engine sip or conn-state lazy;
 * of several, the one that was added last, or whose service became such a one last;
 * or NULL.
 */
struct l4lb_server *l4lb_server_stateless(struct l4lb_net *ln,
					  const struct l4lb_flow *flow)
{
	const struct l4lb_source *source = source_find(ln, flow);

	if (!source)
		return NULL;
	return hlist_entry_safe(rcu_dereference(hlist_first_rcu(&source->stateless)),
				struct l4lb_server, stateless);
}

/**
 * l4lb_server_is_told_apart() - does no other NATed real server send from the
 * same address and port?
 * @server: a real server that l4lb_server_stateless() may find
 *
 * Services by firewall mark are left out: they have no protocol and no port.
 *
 * Context: RCU.
 */
bool l4lb_server_is_told_apart(const struct l4lb_server *server)
{
	const struct l4lb_source *source = rcu_dereference(server->source);

	return source && READ_ONCE(source->n_nat) == 1 &&
	       rcu_dereference(hlist_first_rcu(&source->stateless)) ==
	       &server->stateless;
}

/* Configuration mutex held.  Look first whether the name is taken. */
int l4lb_server_name_add(struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	return rhashtable_insert_fast(&server->ln->server_names,
				      &server->by_name, name_params);
}

/* Configuration mutex held. */
void l4lb_server_name_del(struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	rhashtable_remove_fast(&server->ln->server_names, &server->by_name,
			       name_params);
}

/* @heir, of the same name, is found instead of @server.  Configuration mutex
 * held.
 */
void l4lb_server_name_pass(struct l4lb_server *server, struct l4lb_server *heir)
{
	lockdep_assert_held(&server->ln->lock);
	WARN_ON_ONCE(rhashtable_replace_fast(&server->ln->server_names,
					     &server->by_name, &heir->by_name,
					     name_params));
}

/* Configuration mutex held. */
struct l4lb_server *l4lb_server_by_name(struct l4lb_net *ln,
					const struct l4lb_server_name *name)
{
	lockdep_assert_held(&ln->lock);
	return rhashtable_lookup_fast(&ln->server_names, name, name_params);
}

struct l4lb_server *l4lb_server_by_name_rcu(struct l4lb_net *ln,
					    const struct l4lb_server_name *name)
{
	return rhashtable_lookup(&ln->server_names, name, name_params);
}

int l4lb_server_table_init(struct l4lb_net *ln)
{
	int err = rhashtable_init(&ln->sources, &source_params);

	if (err)
		return err;
	err = rhashtable_init(&ln->server_names, &name_params);
	if (err)
		goto err_sources;
	err = l4lb_tunnel_net_init(ln);
	if (err)
		goto err_names;
	return 0;

err_names:
	rhashtable_destroy(&ln->server_names);
err_sources:
	rhashtable_destroy(&ln->sources);
	return err;
}

void l4lb_server_table_exit(struct l4lb_net *ln)
{
	l4lb_tunnel_net_exit(ln);
	rhashtable_destroy(&ln->server_names);
	rhashtable_destroy(&ln->sources);
}

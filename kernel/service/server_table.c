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
 * @one_packet: those of one-packet services, the newest first (RCU readers,
 *	who look at the first only)
 * @rcu: to free it
 */
struct l4lb_source {
	struct rhash_head	node;
	struct source_key	key;
	unsigned int		refs;
	unsigned int		n_nat;
	struct hlist_head	one_packet;
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
 * Packets see it once l4lb_server_table_update() has found it in its service.
 *
 * Context: configuration mutex held, may sleep.
 * Return: 0 or -ENOMEM.
 */
int l4lb_server_table_add(struct l4lb_server *server)
{
	const struct l4lb_svc_key *svc = &server->name.svc;
	const struct source_key key = {
		.addr	= server->sched.addr,
		.port	= server->sched.port ?: svc->port,
		.af	= server->sched.af,
		.proto	= svc->protocol,
	};

	lockdep_assert_held(&server->ln->lock);
	server->source = source_get(server->ln, &key);
	if (!server->source)
		return -ENOMEM;
	server->ln->n_servers++;
	return 0;
}

static void set_kind(struct l4lb_server *server, bool nat, bool one_packet)
{
	struct l4lb_source *source = server->source;

	if (nat != server->nat)
		WRITE_ONCE(source->n_nat, source->n_nat + (nat ? 1 : -1));
	server->nat = nat;
	if (one_packet == !hlist_unhashed(&server->one_packet))
		return;
	if (one_packet)
		hlist_add_head_rcu(&server->one_packet, &source->one_packet);
	else
		hlist_del_init_rcu(&server->one_packet);
}

/**
 * l4lb_server_table_update() - tell packets what a real server is
 * @server: the real server; its service, the flags of that, or its method may
 *	have changed
 *
 * Context: configuration mutex held.
 */
void l4lb_server_table_update(struct l4lb_server *server)
{
	struct mutex *lock = &server->ln->lock;
	const struct l4lb_service *svc;
	bool nat;

	svc = rcu_dereference_protected(server->svc, lockdep_is_held(lock));
	nat = svc && server->method == IP_VS_CONN_F_MASQ;
	if (server->source)
		set_kind(server, nat,
			 nat && svc->flags & IP_VS_SVC_F_ONEPACKET);
}

/* Configuration mutex held.  Packets may find @server for a grace period. */
void l4lb_server_table_del(struct l4lb_server *server)
{
	struct l4lb_source *source = server->source;
	struct l4lb_net *ln = server->ln;

	lockdep_assert_held(&ln->lock);
	set_kind(server, false, false);
	server->source = NULL;
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
 * l4lb_server_one_packet() - the real server of a one-packet service that a
 * packet comes from
 * @ln: namespace
 * @flow: of the packet, real server to client
 *
 * Context: RCU.
 * Return: of several, the one that was added last, or whose service became a
 * one-packet service last; or NULL.
 */
struct l4lb_server *l4lb_server_one_packet(struct l4lb_net *ln,
					   const struct l4lb_flow *flow)
{
	const struct l4lb_source *source = source_find(ln, flow);

	if (!source)
		return NULL;
	return hlist_entry_safe(rcu_dereference(hlist_first_rcu(&source->one_packet)),
				struct l4lb_server, one_packet);
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

// SPDX-License-Identifier: GPL-2.0
/*
 * Real servers by address, to find the sender of a packet without a connection.
 * A real server of several services is in this table several times, the one
 * that was added last first.
 *
 * And real servers by name, for configuration and for records of other
 * directors, which read it under RCU.  Each is in that table once,
 * whether it is in a service or in the trash.
 */
#include "service/server_table.h"
#include "service/tunnel_table.h"

#include <linux/rhashtable.h>

static const struct rhashtable_params server_params = {
	.key_len	= sizeof(struct l4lb_server_key),
	.key_offset	= offsetof(struct l4lb_server, key),
	.head_offset	= offsetof(struct l4lb_server, by_key.rhead),
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
static_assert(sizeof(struct l4lb_server_key) ==
	      sizeof(union nf_inet_addr) + sizeof(__be16) + 2 * sizeof(u8));

/* Configuration mutex held.  May sleep: a server that was just removed must
 * wait for a grace period.
 */
int l4lb_server_table_add(struct l4lb_server *server)
{
	const struct l4lb_svc_key *svc = &server->name.svc;
	int err;

	lockdep_assert_held(&server->ln->lock);
	/* A reader still standing on it would continue in another chain. */
	if (server->unlisted)
		cond_synchronize_rcu(server->unlisted);
	server->key = (struct l4lb_server_key) {
		.addr	= server->sched.addr,
		.port	= server->sched.port ?: svc->port,
		.af	= server->sched.af,
		.proto	= svc->protocol,
	};
	err = rhltable_insert(&server->ln->servers, &server->by_key,
			      server_params);
	if (!err)
		server->ln->n_servers++;
	return err;
}

/* Configuration mutex held. */
void l4lb_server_table_del(struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	rhltable_remove(&server->ln->servers, &server->by_key, server_params);
	server->ln->n_servers--;
	l4lb_tunnel_unlist(server);
	server->unlisted = get_state_synchronize_rcu();
}

/**
 * l4lb_server_by_source() - the NATed real server that a packet comes from
 * @ln: namespace
 * @flow: of the packet, real server to client
 * @one_packet: only servers of services with one-packet scheduling
 *
 * Services by firewall mark are left out: they have no protocol and no port.
 *
 * Context: RCU.
 * Return: the one that was added last, or NULL.
 */
struct l4lb_server *l4lb_server_by_source(struct l4lb_net *ln,
					  const struct l4lb_flow *flow,
					  bool one_packet)
{
	struct l4lb_server_key key = {
		.addr	= flow->saddr,
		.port	= flow->sport,
		.af	= flow->af,
		.proto	= flow->proto,
	};
	const struct l4lb_service *svc;
	struct rhlist_head *list, *pos;
	struct l4lb_server *server;

	list = rhltable_lookup(&ln->servers, &key, server_params);
	rhl_for_each_entry_rcu(server, pos, list, by_key) {
		svc = rcu_dereference(server->svc);
		if (svc && READ_ONCE(server->method) == IP_VS_CONN_F_MASQ &&
		    (!one_packet ||
		     READ_ONCE(svc->flags) & IP_VS_SVC_F_ONEPACKET))
			return server;
	}
	return NULL;
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
	int err = rhltable_init(&ln->servers, &server_params);

	if (err)
		return err;
	err = rhashtable_init(&ln->server_names, &name_params);
	if (err)
		goto err_servers;
	err = l4lb_tunnel_net_init(ln);
	if (err)
		goto err_names;
	return 0;

err_names:
	rhashtable_destroy(&ln->server_names);
err_servers:
	rhltable_destroy(&ln->servers);
	return err;
}

void l4lb_server_table_exit(struct l4lb_net *ln)
{
	l4lb_tunnel_net_exit(ln);
	rhashtable_destroy(&ln->server_names);
	rhltable_destroy(&ln->servers);
}

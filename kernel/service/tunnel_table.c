// SPDX-License-Identifier: GPL-2.0
/*
 * Tunnels by the address that they lead to.
 *
 * An ICMP error that quotes little of a packet names no connection.  Whether one
 * of our tunnels made the packet is asked here, in one lookup, however many
 * services and real servers there are: anybody may send such errors.
 */
#include "service/tunnel_table.h"

#include <linux/rhashtable.h>
#include <linux/slab.h>

/* Outer protocols: IPIP and IPv6 in one, as a server's packets may have both. */
enum { KIND_IP, KIND_GUE, KIND_GRE, KIND_MAX };

struct endpoint_key {
	union nf_inet_addr	addr;
	u32			af;
};

/**
 * struct l4lb_endpoint - an address of real servers
 * @node: in l4lb_net.endpoints
 * @key: the address
 * @refs: real servers with this address, with any method, also removed ones
 * @n: those that have or had a tunnel, by kind; read by packets
 * @gue_port: of GUE; 0 after two ports were in use: any port then
 * @rcu: to free it
 */
struct l4lb_endpoint {
	struct rhash_head	node;
	struct endpoint_key	key;
	unsigned int		refs;
	unsigned int		n[KIND_MAX];
	__be16			gue_port;
	struct rcu_head		rcu;
};

static const struct rhashtable_params endpoint_params = {
	.key_len	= sizeof(struct endpoint_key),
	.key_offset	= offsetof(struct l4lb_endpoint, key),
	.head_offset	= offsetof(struct l4lb_endpoint, node),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

static unsigned int kind_of(struct l4lb_tun tun)
{
	switch (tun.type) {
	case IP_VS_CONN_F_TUNNEL_TYPE_GUE:
		return KIND_GUE;
	case IP_VS_CONN_F_TUNNEL_TYPE_GRE:
		return KIND_GRE;
	default:
		return KIND_IP;
	}
}

static bool kind_carries(unsigned int kind, __be16 gue_port,
			 const struct l4lb_flow *outer)
{
	switch (kind) {
	case KIND_GUE:
		return outer->proto == IPPROTO_UDP &&
		       (!gue_port || outer->dport == gue_port);
	case KIND_GRE:
		return outer->proto == IPPROTO_GRE;
	default:
		return outer->proto == IPPROTO_IPIP ||
		       outer->proto == IPPROTO_IPV6;
	}
}

bool l4lb_tunnel_carries(struct l4lb_tun tun, const struct l4lb_flow *outer)
{
	return kind_carries(kind_of(tun), tun.port, outer);
}

bool l4lb_tunnel_known(struct l4lb_net *ln, const struct l4lb_flow *outer)
{
	const struct endpoint_key key = { outer->daddr, outer->af };
	const struct l4lb_endpoint *end;
	unsigned int kind;

	if (!READ_ONCE(ln->n_tunnels))
		return false;
	end = rhashtable_lookup(&ln->endpoints, &key, endpoint_params);
	for (kind = 0; end && kind < KIND_MAX; kind++)
		if (READ_ONCE(end->n[kind]) &&
		    kind_carries(kind, READ_ONCE(end->gue_port), outer))
			return true;
	return false;
}

bool l4lb_tunnel_is_server(struct l4lb_net *ln, const union nf_inet_addr *addr,
			   u8 af)
{
	const struct endpoint_key key = { *addr, af };

	return rhashtable_lookup(&ln->endpoints, &key, endpoint_params);
}

/* ---- control path ---- */

static void uncount(struct l4lb_server *server)
{
	struct l4lb_endpoint *end = server->endpoint;
	unsigned int kind = server->tunnel_counted;

	if (!kind--)
		return;
	WRITE_ONCE(end->n[kind], end->n[kind] - 1);
	WRITE_ONCE(server->ln->n_tunnels, server->ln->n_tunnels - 1);
	server->tunnel_counted = 0;
}

static void set_gue_port(struct l4lb_endpoint *end, __be16 port)
{
	if (!end->n[KIND_GUE])
		WRITE_ONCE(end->gue_port, port);
	else if (end->gue_port != port)
		WRITE_ONCE(end->gue_port, 0);
}

void l4lb_tunnel_update(struct l4lb_server *server)
{
	struct l4lb_endpoint *end = server->endpoint;
	struct l4lb_tun tun = l4lb_server_tun(server);
	unsigned int kind = kind_of(tun);

	lockdep_assert_held(&server->ln->lock);
	/* Connections of before keep their method: it goes on counting. */
	if (!end || server->method != IP_VS_CONN_F_TUNNEL)
		return;
	if (kind == KIND_GUE)
		set_gue_port(end, tun.port);
	if (server->tunnel_counted == kind + 1)
		return;
	uncount(server);
	WRITE_ONCE(end->n[kind], end->n[kind] + 1);
	WRITE_ONCE(server->ln->n_tunnels, server->ln->n_tunnels + 1);
	server->tunnel_counted = kind + 1;
}

int l4lb_tunnel_add(struct l4lb_server *server)
{
	const struct endpoint_key key = { server->sched.addr, server->sched.af };
	struct rhashtable *endpoints = &server->ln->endpoints;
	struct l4lb_endpoint *end;
	int err;

	lockdep_assert_held(&server->ln->lock);
	end = rhashtable_lookup_fast(endpoints, &key, endpoint_params);
	if (!end) {
		end = kzalloc(sizeof(*end), GFP_KERNEL_ACCOUNT);
		if (!end)
			return -ENOMEM;
		end->key = key;
		err = rhashtable_insert_fast(endpoints, &end->node,
					     endpoint_params);
		if (err) {
			kfree(end);
			return err;
		}
	}
	end->refs++;
	server->endpoint = end;
	return 0;
}

void l4lb_tunnel_unlist(struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	uncount(server);
}

void l4lb_tunnel_del(struct l4lb_server *server)
{
	struct l4lb_endpoint *end = server->endpoint;

	lockdep_assert_held(&server->ln->lock);
	server->endpoint = NULL;
	if (--end->refs)
		return;
	rhashtable_remove_fast(&server->ln->endpoints, &end->node,
			       endpoint_params);
	kfree_rcu(end, rcu);
}

int l4lb_tunnel_net_init(struct l4lb_net *ln)
{
	return rhashtable_init(&ln->endpoints, &endpoint_params);
}

/* No reader is left, and no real server. */
void l4lb_tunnel_net_exit(struct l4lb_net *ln)
{
	rhashtable_destroy(&ln->endpoints);
}

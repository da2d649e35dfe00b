// SPDX-License-Identifier: GPL-2.0
/* Lookups of connections and templates; see find.h. */
#include "conn/lookup.h"

#include "conn/find.h"

/* One copy per family. */
static __always_inline struct l4lb_conn *
find_any(struct l4lb_net *ln, const struct l4lb_flow *flow, unsigned int kinds,
	 bool *reply)
{
	struct l4lb_wanted w = { .flow = flow, .kinds = kinds };
	const bool again = kinds == BIT(L4LB_CONN_OUT);

	if (flow->af == AF_INET) {
		w.af = AF_INET;
		return l4lb_conn_find_wanted(ln, &w, again, reply);
	}
	w.af = AF_INET6;
	return l4lb_conn_find_wanted(ln, &w, again, reply);
}

/* One that is not over, by its slot of @kind. */
static __always_inline struct l4lb_conn *
find_one(struct l4lb_net *ln, const struct l4lb_flow *flow, enum l4lb_conn_kind kind)
{
	struct l4lb_conn *conn;
	bool reply;

	do {
		conn = find_any(ln, flow, BIT(kind), &reply);
	} while (conn && l4lb_conn_was_over(conn));
	return conn;
}

/* The connection of a packet from a client. */
struct l4lb_conn *l4lb_conn_find_in(struct l4lb_net *ln,
				    const struct l4lb_flow *flow)
{
	return find_one(ln, flow, L4LB_CONN_IN);
}

/* The NATed connection of a packet from a real server. */
struct l4lb_conn *l4lb_conn_find_out(struct l4lb_net *ln,
				     const struct l4lb_flow *flow)
{
	return find_one(ln, flow, L4LB_CONN_OUT);
}

/* The connection of full NAT of a packet from a real server. */
struct l4lb_conn *l4lb_conn_find_local(struct l4lb_net *ln,
				       const struct l4lb_flow *flow)
{
	return find_one(ln, flow, L4LB_CONN_LOCAL);
}

/**
 * l4lb_conn_find_both() - the connection of a packet from either side
 * @ln: namespace
 * @flow: of the packet; its hash is filled in for a new connection
 * @reply: set if the packet is a reply to be translated
 *
 * Context: RCU, BH off.
 * Return: as l4lb_conn_find_out(), or else as l4lb_conn_find_in().
 */
struct l4lb_conn *l4lb_conn_find_both(struct l4lb_net *ln,
				      struct l4lb_flow *flow, bool *reply)
{
	return flow->af == AF_INET ? l4lb_conn_find_here(ln, flow, AF_INET, true, reply) :
				     l4lb_conn_find_here(ln, flow, AF_INET6, true, reply);
}

struct l4lb_conn *l4lb_conn_find_template(struct l4lb_net *ln,
					  const struct l4lb_flow *key)
{
	bool reply;

	return find_any(ln, key, BIT(L4LB_CONN_TEMPLATE_IN), &reply);
}

struct l4lb_conn *l4lb_conn_find_call(struct l4lb_net *ln,
				      struct l4lb_call_key *key)
{
	const struct l4lb_conn_table *table = rcu_dereference(ln->conns);
	struct l4lb_wanted w = {
		.flow	= &key->flow,
		.kinds	= BIT(L4LB_CONN_CALL_IN),
		.call	= key,
		.af	= key->flow.af,
	};
	bool reply;

	if (!table)
		return NULL;
	key->hash = siphash(key->id, key->len, &table->key);
	key->flow.hash = 0;
	key->flow.hash = hash_call(&table->key,
				   l4lb_conn_table_hash(table, &key->flow, true),
				   key->hash);
	w.hash = key->flow.hash;
	return l4lb_look_up(table, &w, &reply);
}

/*
 * The connection of a reply that has the VIP as its source already: with
 * direct routing and tunnels, if replies pass through the director, and from
 * a real server on this host.
 */
struct l4lb_conn *l4lb_conn_find_passing(struct l4lb_net *ln,
					 const struct l4lb_flow *flow)
{
	struct l4lb_flow inverse = l4lb_flow_inverse(flow);
	struct l4lb_conn *conn = l4lb_conn_find_in(ln, &inverse);

	return conn && !l4lb_conn_is_nat(conn) ? conn : NULL;
}

/* SPDX-License-Identifier: GPL-2.0 */
/* The connection of a packet. */
#ifndef _L4LB_CONN_LOOKUP_H
#define _L4LB_CONN_LOOKUP_H

#include "conn/call.h"
#include "conn/table.h"

/* The flow of the client's packets. */
static inline struct l4lb_flow l4lb_conn_flow(const struct l4lb_conn *conn)
{
	return (struct l4lb_flow) {
		.saddr	= l4lb_conn_client(conn),
		.daddr	= l4lb_conn_vip(conn),
		.sport	= conn->cport,
		.dport	= conn->vport,
		.af	= conn->af,
		.proto	= conn->proto,
	};
}

/* The flow of its real server's packets, which its local end receives. */
static inline struct l4lb_flow l4lb_conn_local_flow(const struct l4lb_conn *conn)
{
	return (struct l4lb_flow) {
		.saddr	= l4lb_conn_server(conn),
		.daddr	= conn->local.addr,
		.sport	= conn->dport,
		.dport	= conn->local.port,
		.af	= conn->af,
		.proto	= conn->proto,
	};
}

/* Its real server was removed, and its connections are over: then it goes now,
 * before l4lb_conn_sweep_over() comes to it.
 */
static inline bool l4lb_conn_was_over(struct l4lb_conn *conn)
{
	if (likely(!l4lb_server_over(conn->server)))
		return false;
	l4lb_conn_kill(conn, L4LB_END_LOST);
	return true;
}

/* Lookup: RCU, BH off.  Expired connections are not found, and by find_in(),
 * find_out() and find_local() none that are over.  Callers of the others look at the real server.
 */
struct l4lb_conn *l4lb_conn_find_in(struct l4lb_net *ln,
				    const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_conn_find_out(struct l4lb_net *ln,
				     const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_conn_find_local(struct l4lb_net *ln,
				       const struct l4lb_flow *flow);
/* Both at once; *@reply is set if @flow comes from the real server. */
struct l4lb_conn *l4lb_conn_find_both(struct l4lb_net *ln,
				      struct l4lb_flow *flow, bool *reply);
/* The connection of a reply that needs no translation. */
struct l4lb_conn *l4lb_conn_find_passing(struct l4lb_net *ln,
					 const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_conn_find_template(struct l4lb_net *ln,
					  const struct l4lb_flow *key);
/* The template with that Call-ID; sets the hashes of @key. */
struct l4lb_conn *l4lb_conn_find_call(struct l4lb_net *ln,
				      struct l4lb_call_key *key);

#endif /* _L4LB_CONN_LOOKUP_H */

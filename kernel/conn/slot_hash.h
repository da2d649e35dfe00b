/* SPDX-License-Identifier: GPL-2.0 */
/* The hash of a connection's slots, which is that of the packets that find them. */
#ifndef _L4LB_CONN_SLOT_HASH_H
#define _L4LB_CONN_SLOT_HASH_H

#include "conn/call.h"
#include "conn/hash.h"
#include "conn/lookup.h"
#include "conn/table.h"

static inline u64 hash_anew(const struct l4lb_conn_table *table,
			    const struct l4lb_flow *flow, bool template)
{
	return flow->af == AF_INET ?
	       hash_flow(&table->start, flow, AF_INET, template) :
	       hash_flow(&table->start, flow, AF_INET6, template);
}

/* The hash of packets that find @conn by its slot of @kind: the real server's
 * replies or the client's packets.  An address is given by its first word.
 */
static inline u64 hash_slot(const struct l4lb_conn_table *table,
			    const struct l4lb_conn *conn, enum l4lb_conn_kind kind)
{
	bool out = kind == L4LB_CONN_OUT;
	struct hash_input in = {
		.sport = out ? conn->dport : conn->cport,
		.dport = out ? conn->cport : conn->vport,
		.proto = conn->proto,
		.template = kind == L4LB_CONN_TEMPLATE_IN ||
			    kind == L4LB_CONN_CALL_IN,
	};

	if (conn->af == AF_INET) {
		in.from = out ? &conn->v4.daddr : &conn->v4.caddr;
		in.to = out ? &conn->v4.caddr : &conn->v4.vaddr;
		return hash_header(&table->start, AF_INET, &in);
	}
	in.from = (out ? &conn->v6.daddr : &conn->v6.caddr)->s6_addr32;
	in.to = (out ? &conn->v6.caddr : &conn->v6.vaddr)->s6_addr32;
	return hash_header(&table->start, AF_INET6, &in);
}

/* The same for a slot of any kind. */
static inline u64 hash_any(const struct l4lb_conn_table *table,
			   const struct l4lb_conn *conn, enum l4lb_conn_kind kind)
{
	struct l4lb_flow flow;

	if (likely(kind < L4LB_CONN_CALL_IN))
		return hash_slot(table, conn, kind);
	if (kind == L4LB_CONN_CALL_IN)
		return hash_call(&table->key, hash_slot(table, conn, kind),
				 l4lb_conn_call(conn)->hash);
	flow = l4lb_conn_local_flow(conn);
	return hash_anew(table, &flow, false);
}

#endif /* _L4LB_CONN_SLOT_HASH_H */

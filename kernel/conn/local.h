/* SPDX-License-Identifier: GPL-2.0 */
/* The local end of a connection with full NAT: real servers see it as their client.
 * Included by conn.h.
 */
#ifndef _L4LB_CONN_LOCAL_H
#define _L4LB_CONN_LOCAL_H

#include "base/flow.h"

struct l4lb_conn;
struct l4lb_conn_table;

/* In struct l4lb_conn.method; no real server has it, and listings show NAT. */
#define L4LB_FULL_NAT	8

/**
 * struct l4lb_local - the local end of a connection
 * @addr: an address of this host
 * @port: its port; nobody else has it with the same real server and port
 */
struct l4lb_local {
	union nf_inet_addr	addr;
	__be16			port;
};

/* Finds @conn, which is not in the table yet, a local end, and inserts the slot of its
 * replies.  @hash is that of its client's packets.  RCU, BH off.  Return: NULL, or
 * ERR_PTR(): -EADDRINUSE, all that were tried are taken; or as l4lb_conn_table_insert().
 */
struct l4lb_conn *l4lb_conn_local_insert(struct l4lb_conn_table *table,
					 struct l4lb_conn *conn, u64 hash);

#endif /* _L4LB_CONN_LOCAL_H */

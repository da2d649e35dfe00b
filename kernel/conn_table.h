/* SPDX-License-Identifier: GPL-2.0 */
/* Between conn.c and conn_table.c; everybody else uses conn.h. */
#ifndef _L4LB_CONN_TABLE_H
#define _L4LB_CONN_TABLE_H

#include "conn.h"

struct l4lb_conn *l4lb_conn_table_find(struct l4lb_net *ln,
				       const struct l4lb_tuple *key);
struct l4lb_conn *l4lb_conn_table_insert(struct l4lb_conn *conn);
void l4lb_conn_table_remove(struct l4lb_conn *conn);

/* Are its replies found by a tuple of their own? */
static inline bool l4lb_conn_has_out(const struct l4lb_conn *conn)
{
	return conn->method == IP_VS_CONN_F_MASQ &&
	       !l4lb_conn_test(conn, L4LB_CONN_TEMPLATE);
}

/* Is its time over?  A template lives as long as connections hold it; the last
 * one sets its time before it lets go.
 */
static inline bool l4lb_conn_due(const struct l4lb_conn *conn)
{
	if (atomic_read(&conn->n_holders))
		return false;
	smp_rmb();	/* n_holders before last */
	return l4lb_conn_expired(conn);
}

static inline bool l4lb_conn_alive(const struct l4lb_conn *conn)
{
	return !l4lb_conn_test(conn, L4LB_CONN_DEAD) && !l4lb_conn_due(conn);
}

#endif /* _L4LB_CONN_TABLE_H */

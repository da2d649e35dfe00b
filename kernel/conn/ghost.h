/* SPDX-License-Identifier: GPL-2.0 */
/* What its service's shadow has chosen for a connection: struct l4lb_conn.ghost. */
#ifndef _L4LB_CONN_GHOST_H
#define _L4LB_CONN_GHOST_H

#include "conn/conn.h"

/* RCU, BH off. */
bool l4lb_ghost_join(struct l4lb_conn *conn, const struct l4lb_flow *flow,
		     const struct l4lb_conn *template);
void l4lb_ghost_choose(struct l4lb_conn *template, const struct l4lb_flow *flow);

/* @conn is dead, or was never in the table.  A template's ghost may still be read. */
static inline void l4lb_ghost_leave(const struct l4lb_conn *conn, bool active)
{
	if (unlikely(l4lb_conn_test(conn, L4LB_CONN_LARGE)) && conn->ghost)
		l4lb_server_unbind(conn->ghost,
				   l4lb_conn_test(conn, L4LB_CONN_TEMPLATE), active);
}

#endif /* _L4LB_CONN_GHOST_H */

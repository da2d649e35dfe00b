/* SPDX-License-Identifier: GPL-2.0 */
/* What other directors have: copies of their connections and templates, and what
 * their records change in those of this director.
 */
#ifndef _L4LB_CONN_COPY_H
#define _L4LB_CONN_COPY_H

#include "conn/conn.h"

/* RCU. */

/* Has no packet of its client come here since the last record? */
bool l4lb_conn_unused_here(const struct l4lb_conn *conn);

/* Came it by a record, and has no packet come since?  Then it goes first. */
static inline bool l4lb_conn_is_copy(const struct l4lb_conn *conn)
{
	return l4lb_conn_test(conn, L4LB_CONN_SYNCED) &&
	       l4lb_conn_unused_here(conn);
}

bool l4lb_conn_used_here(const struct l4lb_conn *conn);
void l4lb_conn_renew(struct l4lb_conn *conn, u32 timeout, u32 idle);

#endif /* _L4LB_CONN_COPY_H */

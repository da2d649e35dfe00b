/* SPDX-License-Identifier: GPL-2.0 */
/* What other directors have: copies of their connections and templates, and what
 * their records change in those of this director.
 */
#ifndef _L4LB_CONN_COPY_H
#define _L4LB_CONN_COPY_H

#include "conn/conn.h"

/* RCU. */

bool l4lb_conn_is_copy(const struct l4lb_conn *conn);
bool l4lb_conn_used_here(const struct l4lb_conn *conn);
void l4lb_conn_renew(struct l4lb_conn *conn, u32 timeout, u32 idle);

#endif /* _L4LB_CONN_COPY_H */

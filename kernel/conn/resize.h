/* SPDX-License-Identifier: GPL-2.0 */
/* The size of the connection table. */
#ifndef _L4LB_CONN_RESIZE_H
#define _L4LB_CONN_RESIZE_H

#include "conn/table.h"

int l4lb_conn_resize_init(struct l4lb_conn_table *table);
/* The table is empty, and no reader is left. */
void l4lb_conn_resize_exit(struct l4lb_conn_table *table);
/* Starts a resize if the size is no longer right.  RCU; any context. */
void l4lb_conn_resize_check(struct l4lb_conn_table *table);

#endif /* _L4LB_CONN_RESIZE_H */

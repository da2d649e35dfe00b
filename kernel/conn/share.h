/* SPDX-License-Identifier: GPL-2.0 */
/* The share of each namespace in the connections that all may have together. */
#ifndef _L4LB_CONN_SHARE_H
#define _L4LB_CONN_SHARE_H

#include "conn/table.h"

void l4lb_conn_share_init(void);
void l4lb_conn_share_join(void);
void l4lb_conn_share_leave(struct l4lb_conn_table *table);

void l4lb_conn_table_release(struct l4lb_conn_table *table, bool template);
/* No connection is left, for now. */
void l4lb_conn_table_idle(struct l4lb_conn_table *table);

bool l4lb_conn_share_take(struct l4lb_conn_table *table, unsigned int n);

/* Does the share of @table allow @n connections?  Takes more if it must. */
static inline bool l4lb_conn_share_allows(struct l4lb_conn_table *table,
					  unsigned int n)
{
	return likely(n <= (unsigned int)atomic_read(&table->granted)) ||
	       l4lb_conn_share_take(table, n);
}

#endif /* _L4LB_CONN_SHARE_H */

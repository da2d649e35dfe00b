/* SPDX-License-Identifier: GPL-2.0 */
/* Room for one more connection.  RCU, BH off. */
#ifndef _L4LB_CONN_ADMIT_H
#define _L4LB_CONN_ADMIT_H

#include "conn/table.h"

/* The share of a small conn_max that templates, or half-open connections, may have. */
#define L4LB_CONN_QUOTA_LEAST	64

/**
 * l4lb_conn_table_admit() - take room for one more connection
 * @table: the table
 * @flow: its flow
 * @template: a template, not a connection
 *
 * Return: false if there is none.
 */
static __always_inline bool
l4lb_conn_table_admit(struct l4lb_conn_table *table,
		      const struct l4lb_flow *flow, bool template)
{
	int n = atomic_inc_return(&table->n);

	/* Without a limit conn_max is 0: as an unsigned number, one less is the largest. */
	if (likely(!template &&
		   (u32)n - 1 <= (u32)READ_ONCE(table->ln->sysctl.conn_max) - 1 &&
		   n <= atomic_read(&table->granted) &&
		   (!l4lb_conn_begins_half_open(flow->proto) ||
		    atomic_read(&table->n_half_open) < L4LB_CONN_QUOTA_LEAST)))
		return true;
	return l4lb_conn_table_admit_near(table, flow, template, n);
}

#endif /* _L4LB_CONN_ADMIT_H */

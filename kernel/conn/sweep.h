/* SPDX-License-Identifier: GPL-2.0 */
/* Removal of expired connections. */
#ifndef _L4LB_CONN_SWEEP_H
#define _L4LB_CONN_SWEEP_H

#include "conn/table.h"

void l4lb_conn_sweep_init(struct l4lb_conn_table *table);
void l4lb_conn_sweep_stop(struct l4lb_conn_table *table);
/* Removes the connections of servers whose connections are over, soon. */
void l4lb_conn_sweep_over(struct l4lb_conn_table *table);
void l4lb_conn_sweep_begin(struct l4lb_conn_table *table);

/* Call it after an insertion. */
static inline void l4lb_conn_sweep_kick(struct l4lb_conn_table *table)
{
	if (unlikely(!atomic_read(&table->sweeping)))
		l4lb_conn_sweep_begin(table);
}

#endif /* _L4LB_CONN_SWEEP_H */

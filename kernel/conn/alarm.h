/* SPDX-License-Identifier: GPL-2.0 */
/* A table that is full, and floods of half-open connections. */
#ifndef _L4LB_CONN_ALARM_H
#define _L4LB_CONN_ALARM_H

#include "conn/table.h"

/* A new connection has found the limit reached.  RCU, BH off. */
static inline void l4lb_conn_alarm(struct l4lb_conn_table *table,
				   enum l4lb_alarm which)
{
	if (!(READ_ONCE(table->pressed) & BIT(which)))
		set_bit(which, &table->pressed);
}

/* The sweep: sets the alarms.  Return: is any on? */
bool l4lb_conn_alarm_look(struct l4lb_conn_table *table);

#endif /* _L4LB_CONN_ALARM_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * Alarms: the table is full, or half-open connections have reached their share.
 *
 * A packet that finds a limit reached sets a bit.  The sweep looks four times a
 * second; an alarm that is on goes off only after two seconds without the bit,
 * so a sender at the limit cannot switch it at will.
 */
#include "conn/alarm.h"

#define CALM_LOOKS	8

static u32 count(const struct l4lb_conn_table *table, enum l4lb_alarm which)
{
	return atomic_read(which == L4LB_ALARM_FULL ? &table->n :
						      &table->n_half_open);
}

bool l4lb_conn_alarm_look(struct l4lb_conn_table *table)
{
	/* They are younger than the table; pairs with l4lb_events_create(). */
	struct l4lb_events *events = smp_load_acquire(&table->ln->events);
	bool changed = false, any = false;
	unsigned int i;

	for (i = 0; events && i < L4LB_ALARMS; i++) {
		bool on = READ_ONCE(events->alarm[i].on);
		bool now = test_and_clear_bit(i, &table->pressed);

		table->calm[i] = now ? 0 : min(table->calm[i] + 1, CALM_LOOKS);
		now = now || (on && table->calm[i] < CALM_LOOKS);
		any |= now;
		if (now == on)
			continue;
		WRITE_ONCE(events->alarm[i].count, count(table, i));
		WRITE_ONCE(events->alarm[i].on, now);
		changed = true;
	}
	if (changed)
		l4lb_event_kick(table->ln);
	return any;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Looks at the real servers and alarms that were noted (service/event.c), and
 * tells listeners what differs from what they were told.
 */
#include "config/watch.h"

#include "config/drain.h"

static void look_at_server(struct l4lb_server *server)
{
	struct l4lb_server_watch *watch = &server->watch;
	bool over = READ_ONCE(server->sched.overloaded);

	if (!server->available)
		return;
	if (over != watch->overloaded) {
		watch->overloaded = over;
		l4lb_event_server(over ? L4LB_EVENT_OVERLOADED :
					 L4LB_EVENT_RELIEVED, server);
	}
	if (server->drains && !l4lb_drain_left(server))
		l4lb_drain_end(server);
}

static void look_at_alarm(struct l4lb_events *events, enum l4lb_alarm which)
{
	static const enum l4lb_event what[L4LB_ALARMS][2] = {
		[L4LB_ALARM_FULL] = { L4LB_EVENT_ROOM, L4LB_EVENT_FULL },
		[L4LB_ALARM_FLOOD] = { L4LB_EVENT_FLOOD_OVER, L4LB_EVENT_FLOOD },
	};
	struct l4lb_happening event = { };
	bool on = READ_ONCE(events->alarm[which].on);

	if (on == events->told[which])
		return;
	events->told[which] = on;
	event.what = what[which][on];
	event.count = READ_ONCE(events->alarm[which].count);
	l4lb_event(events->ln, &event);
}

void l4lb_watch_look(struct work_struct *work)
{
	struct l4lb_events *events = container_of(to_delayed_work(work),
						  struct l4lb_events, work);
	struct l4lb_server *server, *next;
	unsigned int i;

	mutex_lock(&events->ln->lock);
	llist_for_each_entry_safe(server, next, llist_del_all(&events->noted),
				  watch.node) {
		clear_bit(0, &server->watch.noted);
		smp_mb__after_atomic();	/* before its state is read */
		look_at_server(server);
		l4lb_server_put(server);
		cond_resched();
	}
	for (i = 0; i < L4LB_ALARMS; i++)
		look_at_alarm(events, i);
	mutex_unlock(&events->ln->lock);
}

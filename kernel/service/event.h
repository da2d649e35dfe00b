/* SPDX-License-Identifier: GPL-2.0 */
/* Listeners are told what happens to services and real servers. */
#ifndef _L4LB_EVENT_H
#define _L4LB_EVENT_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/workqueue.h>

#include "l4lb.h"

struct l4lb_net;
struct l4lb_server;
struct l4lb_service;

/**
 * struct l4lb_happening - an event that listeners are told
 * @what: the event
 * @svc: the service, or NULL
 * @server: the real server of any service, or NULL; without @svc
 * @count: a number that belongs to it, see enum l4lb_event
 */
struct l4lb_happening {
	enum l4lb_event			what;
	const struct l4lb_service	*svc;
	const struct l4lb_server	*server;
	u64				count;
};

/**
 * struct l4lb_server_watch - a real server as listeners know it
 * @node: in l4lb_events.noted, with a reference on the server
 * @noted: bit 0: it is there, or about to be
 * @overloaded: they were told so (configuration mutex)
 * @drained: likewise
 * @then: L4LB_THEN_*: what follows a drain (configuration mutex)
 * @own_loss: its on_loss is that of a drain, not that of its service (likewise)
 * @draining: in l4lb_events.draining: it has a deadline (likewise)
 * @deadline: jiffies
 */
struct l4lb_server_watch {
	struct llist_node	node;
	unsigned long		noted;
	bool			overloaded;
	bool			drained;
	u8			then;
	bool			own_loss;
	struct list_head	draining;
	unsigned long		deadline;
};

/* What concerns a namespace's connection table. */
enum l4lb_alarm {
	L4LB_ALARM_FULL,
	L4LB_ALARM_FLOOD,

	L4LB_ALARMS
};

/**
 * struct l4lb_events - events of a namespace
 * @ln: the namespace
 * @noted: real servers whose state packets may have changed
 * @work: compares states with what was told, at most four times a second
 * @draining: real servers with a deadline (configuration mutex)
 * @expiry: looks at them
 * @ramping: real servers that start slowly (configuration mutex)
 * @ramp: looks at them
 * @seq: number of the last event (configuration mutex)
 * @alarm: whether it is on now, and with which number it began; by the sweep
 * @told: whether listeners were told that it is on (configuration mutex)
 */
struct l4lb_events {
	struct l4lb_net		*ln;
	struct llist_head	noted;
	struct delayed_work	work;
	struct list_head	draining;
	struct delayed_work	expiry;
	struct list_head	ramping;
	struct delayed_work	ramp;
	u64			seq;
	struct {
		bool		on;
		u32		count;
	} alarm[L4LB_ALARMS];
	bool			told[L4LB_ALARMS];
};

/* @send: tells listeners; configuration mutex held, may sleep.  Before there is a
 * namespace.
 */
void l4lb_event_listen(void (*send)(struct l4lb_net *ln,
				    const struct l4lb_happening *event));

/* Configuration mutex held, may sleep: */

int l4lb_events_create(struct l4lb_net *ln, work_func_t look,
		       work_func_t expire, work_func_t ramp);
void l4lb_event(struct l4lb_net *ln, const struct l4lb_happening *event);
void l4lb_event_service(enum l4lb_event what, const struct l4lb_service *svc);
void l4lb_event_server(enum l4lb_event what, const struct l4lb_server *server);

/* Packets are gone.  May sleep; not with the configuration mutex. */
void l4lb_events_stop(struct l4lb_net *ln);
/* A grace period later. */
void l4lb_events_destroy(struct l4lb_net *ln);

/* Any context: */

/* The state of @server may have changed: the work is to look at it. */
void l4lb_event_note(struct l4lb_server *server);
/* Have the work look at the alarms. */
void l4lb_event_kick(struct l4lb_net *ln);

#endif /* _L4LB_EVENT_H */

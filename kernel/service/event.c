// SPDX-License-Identifier: GPL-2.0
/*
 * Events: what listeners are told about services, real servers and the table.
 *
 * A command tells its events itself, in order, under the configuration mutex.
 * What packets cause is only noted: a list of real servers and two alarms, at
 * which a work looks a quarter of a second later.  It tells what differs from
 * what was told before, so whoever sends packets chooses neither the rate of
 * events nor their cost.
 */
#include "service/event.h"

#include <linux/bitops.h>
#include <linux/slab.h>

#include "service/server.h"

#define CREATE_TRACE_POINTS
#include "service/trace.h"

#define LOOK_DELAY	(HZ / 4)

static void (*send_event)(struct l4lb_net *ln,
			  const struct l4lb_happening *event);

void l4lb_event_listen(void (*send)(struct l4lb_net *ln,
				    const struct l4lb_happening *event))
{
	send_event = send;
}

/* Idempotent.  @look: looks at what was noted; @expire: at deadlines; @ramp: at slow
 * starts.
 */
int l4lb_events_create(struct l4lb_net *ln, work_func_t look,
		       work_func_t expire, work_func_t ramp)
{
	struct l4lb_events *events;

	lockdep_assert_held(&ln->lock);
	if (ln->events)
		return 0;
	events = kzalloc(sizeof(*events), GFP_KERNEL_ACCOUNT);
	if (!events)
		return -ENOMEM;
	events->ln = ln;
	INIT_LIST_HEAD(&events->draining);
	INIT_DELAYED_WORK(&events->work, look);
	INIT_DELAYED_WORK(&events->expiry, expire);
	INIT_LIST_HEAD(&events->ramping);
	INIT_DELAYED_WORK(&events->ramp, ramp);
	smp_store_release(&ln->events, events);	/* packets find it whole */
	return 0;
}

void l4lb_event(struct l4lb_net *ln, const struct l4lb_happening *event)
{
	lockdep_assert_held(&ln->lock);
	if (!ln->events || ln->exiting)
		return;
	trace_l4lb_event(ln, event);
	ln->events->seq++;
	send_event(ln, event);
}

void l4lb_event_service(enum l4lb_event what, const struct l4lb_service *svc)
{
	struct l4lb_happening event = { .what = what, .svc = svc };

	l4lb_event(svc->ln, &event);
}

void l4lb_event_server(enum l4lb_event what, const struct l4lb_server *server)
{
	struct l4lb_happening event = { .what = what, .server = server };

	l4lb_event(server->ln, &event);
}

void l4lb_event_note(struct l4lb_server *server)
{
	/* pairs with the release in l4lb_events_create() */
	struct l4lb_events *events = smp_load_acquire(&server->ln->events);

	if (!events || READ_ONCE(server->ln->exiting) ||
	    test_and_set_bit(0, &server->watch.noted))
		return;
	/* The caller's own reference may be the last one. */
	if (!refcount_inc_not_zero(&server->refs))
		return;
	if (llist_add(&server->watch.node, &events->noted))
		queue_delayed_work(system_power_efficient_wq, &events->work,
				   LOOK_DELAY);
}

void l4lb_event_kick(struct l4lb_net *ln)
{
	/* pairs with the release in l4lb_events_create() */
	struct l4lb_events *events = smp_load_acquire(&ln->events);

	if (events && !READ_ONCE(ln->exiting))
		queue_delayed_work(system_power_efficient_wq, &events->work,
				   LOOK_DELAY);
}

/* @exiting is set: nobody starts the work again. */
void l4lb_events_stop(struct l4lb_net *ln)
{
	struct l4lb_server *server, *next;
	struct llist_node *noted;

	if (!ln->events)
		return;
	cancel_delayed_work_sync(&ln->events->work);
	cancel_delayed_work_sync(&ln->events->expiry);
	cancel_delayed_work_sync(&ln->events->ramp);
	noted = llist_del_all(&ln->events->noted);
	llist_for_each_entry_safe(server, next, noted, watch.node)
		l4lb_server_put(server);
}

void l4lb_events_destroy(struct l4lb_net *ln)
{
	kfree(ln->events);
	ln->events = NULL;
}

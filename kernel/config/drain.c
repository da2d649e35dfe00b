// SPDX-License-Identifier: GPL-2.0
/*
 * Drains.  A real server with weight 0 gets no new connections; it is drained
 * when it has neither connections nor templates, or when its deadline has passed.
 * Then listeners are told, and it stays or is removed.
 *
 * The last connection's end is noted by whoever ends it (service/event.c), so
 * that nobody has to look again and again.  Deadlines have one work for all of
 * a namespace, at most four times a second.
 */
#include "config/drain.h"

#include <linux/netlink.h>

#include "config/server_edit.h"

#define EXPIRY_PAUSE	(HZ / 4)

u32 l4lb_drain_left(const struct l4lb_server *server)
{
	/* Each is negative for a moment when it is read beside a change. */
	return max(atomic_read(&server->sched.total), 0) +
	       max(atomic_read(&server->persist), 0);
}

/* What is left of its connections is treated as THEN says, whatever the service
 * says.
 */
static void remove_drained(struct l4lb_server *server, u8 then)
{
	struct l4lb_net *ln = server->ln;
	struct l4lb_service *svc;

	svc = rcu_dereference_protected(server->svc,
					lockdep_is_held(&ln->lock));
	if (then != L4LB_THEN_DELETE) {
		server->watch.own_loss = true;
		WRITE_ONCE(server->on_loss, then == L4LB_THEN_RESET ?
			   L4LB_LOSS_RESET : L4LB_LOSS_MOVE);
	}
	l4lb_server_del(svc, server, NULL);
}

void l4lb_drain_end(struct l4lb_server *server)
{
	struct l4lb_happening event = {
		.what = L4LB_EVENT_DRAINED,
		.server = server,
		.count = l4lb_drain_left(server),
	};
	u8 then = server->watch.then;

	lockdep_assert_held(&server->ln->lock);
	list_del_init(&server->watch.draining);
	if (!server->watch.drained)
		l4lb_event(server->ln, &event);
	server->watch.drained = true;
	if (then != L4LB_THEN_STAY)
		remove_drained(server, then);
}

static void expire_at(struct l4lb_events *events, unsigned long when)
{
	unsigned long now = jiffies;

	mod_delayed_work(system_power_efficient_wq, &events->expiry,
			 time_after(when, now + EXPIRY_PAUSE) ? when - now :
							       EXPIRY_PAUSE);
}

void l4lb_drain_expire(struct work_struct *work)
{
	struct l4lb_events *events = container_of(to_delayed_work(work),
						  struct l4lb_events, expiry);
	struct l4lb_server *server, *next;
	unsigned long first = 0;
	bool any = false;

	mutex_lock(&events->ln->lock);
	list_for_each_entry_safe(server, next, &events->draining,
				 watch.draining) {
		cond_resched();
		if (time_after_eq(jiffies, server->watch.deadline)) {
			l4lb_drain_end(server);
			continue;
		}
		if (!any || time_before(server->watch.deadline, first))
			first = server->watch.deadline;
		any = true;
	}
	if (any && !events->ln->exiting)
		expire_at(events, first);
	mutex_unlock(&events->ln->lock);
}

/* The weight of a server that was restored with weight 0. */
static int set_last_weight(struct l4lb_server *server, u32 weight,
			   struct netlink_ext_ack *extack)
{
	if (server->sched.weight) {
		NL_SET_ERR_MSG(extack, "only a real server with weight 0 can have a last weight");
		return -EINVAL;
	}
	WRITE_ONCE(server->sched.last_weight, weight);
	return 0;
}

/**
 * l4lb_drain_begin() - drain a real server
 * @svc: its service
 * @server: result of l4lb_server_find(), may be NULL
 * @drain: deadline and what follows; an earlier order is replaced
 * @extack: gets a sentence on failure
 *
 * Context: configuration mutex held, may sleep.
 * Return: 0, -ENOENT without @server, or a negative errno of
 * l4lb_server_edit(), with nothing changed.
 */
int l4lb_drain_begin(struct l4lb_service *svc, struct l4lb_server *server,
		     const struct l4lb_drain *drain,
		     struct netlink_ext_ack *extack)
{
	struct l4lb_events *events = svc->ln->events;
	struct l4lb_server_config cfg = { };
	int err;

	lockdep_assert_held(&svc->ln->lock);
	if (!server) {
		NL_SET_ERR_MSG(extack, "the service has no such real server: add it");
		return -ENOENT;
	}
	if (drain->last_weight)
		return set_last_weight(server, drain->last_weight, extack);
	l4lb_server_save(server, &cfg);
	cfg.weight = 0;
	err = l4lb_server_edit(svc, server, &cfg, extack);
	if (err)
		return err;
	server->watch.then = drain->then;
	list_del_init(&server->watch.draining);
	if (drain->seconds) {
		server->watch.deadline = jiffies + drain->seconds * HZ;
		list_add_tail(&server->watch.draining, &events->draining);
		/* The work finds out which deadline is the first. */
		expire_at(events, jiffies);
	}
	l4lb_event_note(server);
	return 0;
}

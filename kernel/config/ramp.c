// SPDX-License-Identifier: GPL-2.0
/*
 * Beginning and end of slow starts.
 *
 * A real server starts slowly when it joins others: it is added to a service, comes
 * back, or its weight was 0.  Not while the service itself is new: then all of
 * its servers are, and the first one must not get everything.
 */
#include "config/ramp.h"

#include "service/pool.h"
#include "service/ramp.h"

#define CATCH_UP_RAMPS	4	/* it may take so many times as long */
#define LOOK_PAUSE	HZ

bool l4lb_ramp_due(const struct l4lb_service *svc, u32 seconds)
{
	return seconds &&
	       !time_before(jiffies, svc->fresh + seconds * HZ);
}

bool l4lb_ramp_applies(struct l4lb_service *svc,
		       const struct l4lb_server *server)
{
	const struct l4lb_server *other;

	lockdep_assert_held(&svc->ln->lock);
	if (!svc->policy.ramp)
		return false;
	list_for_each_entry(other, &svc->servers, node) {
		if (other != server && other->sched.weight)
			return l4lb_ramp_due(svc, svc->policy.ramp);
		cond_resched();
	}
	svc->fresh = jiffies;
	return false;
}

void l4lb_ramp_begin(struct l4lb_server *server, struct l4lb_service *svc)
{
	struct l4lb_events *events = svc->ln->events;

	lockdep_assert_held(&svc->ln->lock);
	if (server->ramp.phase)
		return;
	WRITE_ONCE(server->ramp.since, jiffies);
	WRITE_ONCE(server->ramp.phase, L4LB_RAMP_RISES);
	atomic_set(&server->ramp.gate, 0);
	atomic_set(&server->ramp.kept, 0);
	server->ramp.svc = svc;
	svc->n_ramping++;
	list_add_tail(&server->ramp.node, &events->ramping);
	queue_delayed_work(system_power_efficient_wq, &events->ramp, LOOK_PAUSE);
}

/* @look: jiffies when it began: what the others have is found once in a look. */
static bool has_caught_up(const struct l4lb_server *server, unsigned long look)
{
	struct l4lb_service *svc = server->ramp.svc;

	if (svc->ramp_look != look) {
		svc->ramp_look = look;
		svc->ramp_mean = l4lb_ramp_mean(svc);
	}
	return l4lb_ramp_load(svc, server) * 50 >= svc->ramp_mean * 49;
}

static bool is_over(struct l4lb_server *server, unsigned long look)
{
	const struct l4lb_service *svc = server->ramp.svc;
	const struct l4lb_sched_ops *ops = l4lb_inst_ops(svc->inst);
	unsigned long whole = svc->policy.ramp * HZ;

	if (time_before(jiffies, server->ramp.since + whole))
		return false;
	if (!whole || !ops || !ops->greedy || has_caught_up(server, look) ||
	    time_after_eq(jiffies,
			  server->ramp.since + (1 + CATCH_UP_RAMPS) * whole))
		return true;
	WRITE_ONCE(server->ramp.phase, L4LB_RAMP_CATCHES_UP);
	return false;
}

/* Gives the services of @over pools without their gates.  Without memory for one its gates
 * stay, open, and the next look tries again.
 */
static void settle(struct l4lb_events *events, struct list_head *over)
{
	struct l4lb_server *server, *next;
	struct l4lb_service *svc;

	list_for_each_entry(server, over, ramp.node) {
		WRITE_ONCE(server->ramp.phase, L4LB_RAMP_NONE);
		server->ramp.svc->ramp_settle = L4LB_SETTLE_TRY;
	}
	list_for_each_entry_safe(server, next, over, ramp.node) {
		svc = server->ramp.svc;
		if (svc->ramp_settle == L4LB_SETTLE_TRY)
			svc->ramp_settle = l4lb_service_rebuild(svc) ?
					   L4LB_SETTLE_FAILED : L4LB_SETTLE_DONE;
		WRITE_ONCE(server->ramp.phase, L4LB_RAMP_RISES);
		if (svc->ramp_settle == L4LB_SETTLE_DONE)
			l4lb_ramp_end(server);
		else
			list_move_tail(&server->ramp.node, &events->ramping);
		cond_resched();
	}
}

void l4lb_ramp_look(struct work_struct *work)
{
	struct l4lb_events *events = container_of(to_delayed_work(work),
						  struct l4lb_events, ramp);
	struct l4lb_server *server, *next;
	unsigned long look = jiffies;
	LIST_HEAD(over);

	mutex_lock(&events->ln->lock);
	list_for_each_entry_safe(server, next, &events->ramping, ramp.node) {
		if (is_over(server, look))
			list_move_tail(&server->ramp.node, &over);
		cond_resched();
	}
	settle(events, &over);
	if (!list_empty(&events->ramping) && !events->ln->exiting)
		queue_delayed_work(system_power_efficient_wq, &events->ramp,
				   LOOK_PAUSE);
	mutex_unlock(&events->ln->lock);
}

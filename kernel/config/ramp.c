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
	       !time_before(jiffies, svc->created + seconds * HZ);
}

bool l4lb_ramp_applies(const struct l4lb_service *svc,
		       const struct l4lb_server *server)
{
	const struct l4lb_server *other;

	lockdep_assert_held(&svc->ln->lock);
	if (!l4lb_ramp_due(svc, svc->policy.ramp))
		return false;
	list_for_each_entry(other, &svc->servers, node) {
		if (other != server && l4lb_server_usable(&other->sched))
			return true;
		cond_resched();
	}
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
	server->ramp.svc = svc;
	svc->n_ramping++;
	list_add_tail(&server->ramp.node, &events->ramping);
	queue_delayed_work(system_power_efficient_wq, &events->ramp, LOOK_PAUSE);
}

static void leave(struct l4lb_server *server)
{
	server->ramp.svc->n_ramping--;
	server->ramp.svc = NULL;
	list_del_init(&server->ramp.node);
}

void l4lb_ramp_end(struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	if (!server->ramp.phase)
		return;
	WRITE_ONCE(server->ramp.phase, L4LB_RAMP_NONE);
	leave(server);
}

/* What other servers of @svc have, found once for newcomers that follow each other. */
struct mean {
	const struct l4lb_service	*svc;
	u64				load;
};

static bool has_caught_up(const struct l4lb_server *server, struct mean *mean)
{
	if (mean->svc != server->ramp.svc) {
		mean->svc = server->ramp.svc;
		mean->load = l4lb_ramp_mean(mean->svc);
	}
	return l4lb_ramp_load(server) * 50 >= mean->load * 49;
}

static bool is_over(struct l4lb_server *server, struct mean *mean)
{
	const struct l4lb_service *svc = server->ramp.svc;
	const struct l4lb_sched_ops *ops = l4lb_inst_ops(svc->inst);
	unsigned long whole = svc->policy.ramp * HZ;

	if (time_before(jiffies, server->ramp.since + whole))
		return false;
	if (!whole || !ops || !ops->greedy || has_caught_up(server, mean) ||
	    time_after_eq(jiffies,
			  server->ramp.since + (1 + CATCH_UP_RAMPS) * whole))
		return true;
	WRITE_ONCE(server->ramp.phase, L4LB_RAMP_CATCHES_UP);
	return false;
}

/* Gives @svc a pool without the gates of @over.  Without memory the gates stay, open,
 * and the next look tries again.
 */
static void settle(struct l4lb_service *svc, struct list_head *over)
{
	struct l4lb_server *server, *next;

	list_for_each_entry(server, over, ramp.node)
		WRITE_ONCE(server->ramp.phase, L4LB_RAMP_NONE);
	if (l4lb_service_rebuild(svc)) {
		list_for_each_entry(server, over, ramp.node)
			WRITE_ONCE(server->ramp.phase, L4LB_RAMP_RISES);
		list_splice_tail_init(over, &svc->ln->events->ramping);
		return;
	}
	list_for_each_entry_safe(server, next, over, ramp.node)
		leave(server);
}

/* Those of the same service follow each other if they joined it together. */
static void settle_all(struct list_head *over)
{
	struct l4lb_server *server;
	struct l4lb_service *svc;
	LIST_HEAD(same);

	while (!list_empty(over)) {
		server = list_first_entry(over, struct l4lb_server, ramp.node);
		svc = server->ramp.svc;
		do {
			list_move_tail(&server->ramp.node, &same);
			server = list_first_entry_or_null(over,
							  struct l4lb_server,
							  ramp.node);
		} while (server && server->ramp.svc == svc);
		settle(svc, &same);
		cond_resched();
	}
}

void l4lb_ramp_look(struct work_struct *work)
{
	struct l4lb_events *events = container_of(to_delayed_work(work),
						  struct l4lb_events, ramp);
	struct l4lb_server *server, *next;
	struct mean mean = { };
	LIST_HEAD(over);

	mutex_lock(&events->ln->lock);
	list_for_each_entry_safe(server, next, &events->ramping, ramp.node) {
		if (is_over(server, &mean))
			list_move_tail(&server->ramp.node, &over);
		cond_resched();
	}
	settle_all(&over);
	if (!list_empty(&events->ramping) && !events->ln->exiting)
		queue_delayed_work(system_power_efficient_wq, &events->ramp,
				   LOOK_PAUSE);
	mutex_unlock(&events->ln->lock);
}

/* SPDX-License-Identifier: GPL-2.0 */
/* What a real server knows of its slow start; see ramp.c. */
#ifndef _L4LB_NEWCOMER_H
#define _L4LB_NEWCOMER_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/types.h>

struct l4lb_service;

enum l4lb_ramp_phase {
	L4LB_RAMP_NONE,		/* it gets what the scheduler gives it */
	L4LB_RAMP_RISES,	/* its share grows from 0 */
	L4LB_RAMP_CATCHES_UP,	/* it gets twice its share until it has its load */
};

/* Of a service whose newcomers' time is up: has it a pool without them? */
enum l4lb_ramp_settle {
	L4LB_SETTLE_TRY,
	L4LB_SETTLE_DONE,
	L4LB_SETTLE_FAILED,
};

/**
 * struct l4lb_server_ramp - the slow start of a real server
 * @phase: enum l4lb_ramp_phase; packets use READ_ONCE()
 * @gate: adds the part of its time for each connection that the scheduler gives it
 * @kept: connections that it might have got and that its scheduler has not given it
 * @since: jiffies when it joined its service; READ_ONCE()
 * @svc: the service, while there is a phase (configuration mutex)
 * @node: in l4lb_events.ramping, likewise
 */
struct l4lb_server_ramp {
	u8			phase;
	atomic_t		gate;
	atomic_t		kept;
	unsigned long		since;
	struct l4lb_service	*svc;
	struct list_head	node;
};

#endif /* _L4LB_NEWCOMER_H */

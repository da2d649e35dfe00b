/* SPDX-License-Identifier: GPL-2.0 */
/* Drains: real servers with weight 0, and what follows.  Configuration mutex held. */
#ifndef _L4LB_DRAIN_H
#define _L4LB_DRAIN_H

#include "service/server.h"

/**
 * struct l4lb_drain - an order to drain a real server
 * @seconds: 1 to %L4LB_DRAIN_SECONDS_MAX, or 0: no deadline
 * @then: L4LB_THEN_*
 * @last_weight: 0, or its weight before, for one that has weight 0
 */
struct l4lb_drain {
	u32	seconds;
	u32	then;
	u32	last_weight;
};

int l4lb_drain_begin(struct l4lb_service *svc, struct l4lb_server *server,
		     const struct l4lb_drain *drain,
		     struct netlink_ext_ack *extack);
/* It is drained, or its time is over. */
void l4lb_drain_end(struct l4lb_server *server);
/* Connections and templates that it has. */
u32 l4lb_drain_left(const struct l4lb_server *server);

/* The work l4lb_events.expiry; takes the mutex. */
void l4lb_drain_expire(struct work_struct *work);

#endif /* _L4LB_DRAIN_H */

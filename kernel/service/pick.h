/* SPDX-License-Identifier: GPL-2.0 */
/* The choice of a real server. */
#ifndef _L4LB_PICK_H
#define _L4LB_PICK_H

#include "service/ramp.h"
#include "service/server.h"
#include "service/service.h"
#include "service/trace.h"

/* The real server for a new flow, valid in the caller's RCU section, or NULL
 * if none may take it.  BH off.
 */
static __always_inline struct l4lb_server *
l4lb_service_pick(struct l4lb_service *svc, const struct l4lb_flow *flow)
{
	const struct l4lb_pool *pool = rcu_dereference(svc->pool);
	struct l4lb_sched_server *d;
	struct l4lb_server *server;

	if (unlikely(!pool->ops))
		return NULL;
	d = likely(!pool->ramp) ? pool->ops->pick(pool, flow) :
				  l4lb_ramp_pick(pool, flow);
	server = d ? l4lb_server_of(d) : NULL;
	trace_l4lb_pick(svc, flow, server);
	return server;
}

#endif /* _L4LB_PICK_H */

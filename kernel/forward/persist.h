/* SPDX-License-Identifier: GPL-2.0 */
/* Persistence: one client, one real server. */
#ifndef _L4LB_PERSIST_H
#define _L4LB_PERSIST_H

#include "conn/conn.h"

/* Create the connection of a new flow of @svc.  @first as in l4lb_schedule().
 * NULL: none, see *reason.
 */
struct l4lb_conn *l4lb_persist_schedule(struct l4lb_service *svc,
					const struct l4lb_flow *flow,
					const struct l4lb_pkt *first,
					enum l4lb_drop *reason);
/* The template for a flow of @svc, or NULL.  RCU, BH off. */
struct l4lb_conn *l4lb_persist_find(struct l4lb_service *svc,
				    const struct l4lb_flow *flow);

#endif /* _L4LB_PERSIST_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Persistence: one client, one real server. */
#ifndef _L4LB_PERSIST_H
#define _L4LB_PERSIST_H

#include "conn/call.h"

/* Create the connection of a new flow of @svc.  @first as in l4lb_schedule().
 * NULL: none, see *reason.
 */
struct l4lb_conn *l4lb_persist_schedule(struct l4lb_service *svc,
					const struct l4lb_flow *flow,
					const struct l4lb_pkt *first,
					enum l4lb_drop *reason);
/* The same for a packet whose Call-ID is in @key.  @once as in l4lb_schedule(). */
struct l4lb_conn *l4lb_persist_call(struct l4lb_service *svc,
				    const struct l4lb_pkt *pkt,
				    struct l4lb_call_key *key,
				    struct l4lb_conn *once,
				    enum l4lb_drop *reason);
/* The same for a packet from @server, whose flow is @reply; NULL also if @svc has
 * one-packet scheduling.
 */
struct l4lb_conn *l4lb_persist_begin(struct l4lb_service *svc,
				     const struct l4lb_flow *reply,
				     struct l4lb_call_key *key,
				     struct l4lb_server *server);
/* The template for a flow of @svc, or NULL.  RCU, BH off. */
struct l4lb_conn *l4lb_persist_find(struct l4lb_service *svc,
				    const struct l4lb_flow *flow);

#endif /* _L4LB_PERSIST_H */

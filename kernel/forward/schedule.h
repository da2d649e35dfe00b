/* SPDX-License-Identifier: GPL-2.0 */
/* Choosing a real server for a new flow. */
#ifndef _L4LB_SCHEDULE_H
#define _L4LB_SCHEDULE_H

#include "conn/conn.h"
#include "service/pick.h"

/**
 * struct l4lb_arrival - the first packet of a flow
 * @skb: the packet; its data may move
 * @pkt: the same, parsed
 * @again: its connection was just killed: it has had its place
 */
struct l4lb_arrival {
	struct sk_buff		*skb;
	const struct l4lb_pkt	*pkt;
	bool			again;
};

#define L4LB_PORT_FTP_DATA	20

/* Only the server opens data connections of active FTP. */
static inline bool l4lb_flow_may_start(const struct l4lb_flow *flow)
{
	return flow->sport != htons(L4LB_PORT_FTP_DATA);
}

/* The scheduler's choice, and a connection.  RCU, BH off. */
static __always_inline struct l4lb_conn *
l4lb_schedule_flow(struct l4lb_service *svc, const struct l4lb_flow *flow,
		   const struct l4lb_pkt *first, enum l4lb_drop *reason)
{
	struct l4lb_conn_target target __l4lb_unset;

	target.first = first;
	target.server = l4lb_service_pick(svc, flow);
	if (unlikely(!target.server)) {
		*reason = L4LB_DROP_NO_DEST;
		return NULL;
	}
	target.dport = target.server->sched.port ?: flow->dport;
	return l4lb_conn_create(flow, &target, NULL, reason);
}

struct l4lb_conn *l4lb_schedule(struct l4lb_service *svc,
				const struct l4lb_flow *flow,
				const struct l4lb_pkt *first,
				struct l4lb_conn *once,
				enum l4lb_drop *reason);

/* l4lb_schedule(), inline as long as nothing but its scheduler decides. */
static __always_inline struct l4lb_conn *
l4lb_schedule_here(struct l4lb_service *svc, const struct l4lb_flow *flow,
		   const struct l4lb_pkt *first, struct l4lb_conn *once,
		   enum l4lb_drop *reason)
{
	if (unlikely(READ_ONCE(svc->limit) || !svc->key.port ||
		     READ_ONCE(svc->flags) & (IP_VS_SVC_F_PERSISTENT |
					      IP_VS_SVC_F_ONEPACKET)))
		return l4lb_schedule(svc, flow, first, once, reason);
	return l4lb_schedule_flow(svc, flow, first, reason);
}

struct l4lb_conn *l4lb_schedule_again(struct l4lb_service *svc,
				      const struct l4lb_flow *flow,
				      const struct l4lb_pkt *first,
				      struct l4lb_conn *once,
				      enum l4lb_drop *reason);

struct l4lb_conn *l4lb_schedule_call(struct l4lb_service *svc,
				     const struct l4lb_arrival *arrival,
				     struct l4lb_conn *once,
				     enum l4lb_drop *reason);

/* @skb, which l4lb_schedule() refused with L4LB_DROP_LIMIT, is about to be dropped. */
void l4lb_schedule_refuse(struct l4lb_service *svc, struct sk_buff *skb,
			  const struct l4lb_pkt *pkt);

#endif /* _L4LB_SCHEDULE_H */

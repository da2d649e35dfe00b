/* SPDX-License-Identifier: GPL-2.0 */
/* Choosing a real server for a new flow. */
#ifndef _L4LB_SCHEDULE_H
#define _L4LB_SCHEDULE_H

#include "conn/conn.h"

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

bool l4lb_flow_may_start(const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_schedule(struct l4lb_service *svc,
				const struct l4lb_flow *flow,
				const struct l4lb_pkt *first,
				struct l4lb_conn *once,
				enum l4lb_drop *reason);

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

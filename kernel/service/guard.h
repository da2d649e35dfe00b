/* SPDX-License-Identifier: GPL-2.0 */
/* Guards: keep stray packets for a VIP away from this host's own programs. */
#ifndef _L4LB_GUARD_H
#define _L4LB_GUARD_H

#include "base/flow.h"
#include "service/service.h"

/* Packet path: RCU, BH off.  Return: L4LB_GUARD_*, the action for a packet that
 * matches no service.
 */
u32 l4lb_guard_find(const struct sk_buff *skb, const struct l4lb_pkt *pkt,
		    struct l4lb_net *ln);

/* Control path: configuration mutex held.  Reserve a guard (unless it is OFF)
 * before setting it, so that setting cannot fail.
 */
int l4lb_guard_reserve(struct l4lb_service *svc, u32 guard,
		       struct netlink_ext_ack *extack);
void l4lb_guard_set(struct l4lb_service *svc, u32 guard);
void l4lb_guard_del(struct l4lb_service *svc);

/* Per namespace. */
int l4lb_guard_net_init(struct l4lb_net *ln);
void l4lb_guard_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_GUARD_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of services that let nothing through but their services. */
#ifndef _L4LB_GUARD_H
#define _L4LB_GUARD_H

#include "base/flow.h"
#include "service/service.h"

/* Packet path: RCU, BH off.  What a guard of the packet's address wants done
 * with it, as no service takes it: L4LB_GUARD_*.
 */
u32 l4lb_guard_find(const struct sk_buff *skb, const struct l4lb_pkt *pkt,
		    struct l4lb_net *ln);

/* Control path: configuration mutex held.  A guard that is not OFF is reserved
 * before it is set, which cannot fail then.
 */
int l4lb_guard_reserve(struct l4lb_service *svc, u32 guard,
		       struct netlink_ext_ack *extack);
void l4lb_guard_set(struct l4lb_service *svc, u32 guard);
void l4lb_guard_del(struct l4lb_service *svc);

/* By namespace. */
int l4lb_guard_net_init(struct l4lb_net *ln);
void l4lb_guard_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_GUARD_H */

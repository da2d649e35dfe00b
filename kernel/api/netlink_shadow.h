/* SPDX-License-Identifier: GPL-2.0 */
/* Shadows of services in messages of family L4LB. */
#ifndef _L4LB_NETLINK_SHADOW_H
#define _L4LB_NETLINK_SHADOW_H

#include "service/service.h"

#include <net/genetlink.h>

/* The scheduler that attribute SHADOW names: with a reference, or NULL for "none" or
 * without the attribute.  May sleep and load a module: no lock may be held.
 */
int l4lb_nl_parse_shadow(const struct l4lb_sched_ops **ops, const struct nlattr *attr,
			 struct netlink_ext_ack *extack);
/* Its name, and what it has counted.  They add nothing for a service without a shadow.
 * Configuration mutex held.
 */
int l4lb_nl_fill_shadow(struct sk_buff *skb, const struct l4lb_service *svc);
int l4lb_nl_fill_shadow_live(struct sk_buff *skb, const struct l4lb_service *svc);

int l4lb_nl_start_shadow(struct netlink_callback *cb);
int l4lb_nl_dump_shadow(struct sk_buff *skb, struct netlink_callback *cb);

/* The scheduler of that name, with a reference; NULL with a sentence: there is none.
 * May sleep and load a module.
 */
const struct l4lb_sched_ops *l4lb_nl_get_scheduler(const struct nlattr *name,
						   struct netlink_ext_ack *extack);

#endif /* _L4LB_NETLINK_SHADOW_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* SET_DRAIN and GET_DRAIN of family L4LB. */
#ifndef _L4LB_NETLINK_DRAIN_H
#define _L4LB_NETLINK_DRAIN_H

#include "l4lb.h"
#include "service/service.h"

#include <net/genetlink.h>

extern const struct nla_policy
	l4lb_nl_drain_policy[L4LB_DRAIN_ATTR_LAST_WEIGHT + 1];

/* Configuration mutex held. */
int l4lb_nl_set_drain(struct l4lb_service *svc, struct genl_info *info);
int l4lb_nl_dump_drains(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* _L4LB_NETLINK_DRAIN_H */

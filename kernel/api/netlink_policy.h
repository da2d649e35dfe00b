/* SPDX-License-Identifier: GPL-2.0 */
/* What family L4LB sets of a service. */
#ifndef _L4LB_NETLINK_POLICY_H
#define _L4LB_NETLINK_POLICY_H

#include "service/service.h"

#include <net/genetlink.h>

/* The nest POLICY of family L4LB.  parse: over what @policy has; it must be
 * there and is checked.  fill: all of it.
 */
int l4lb_nl_parse_policy(struct l4lb_policy *policy, const struct nlattr *nest,
			 struct netlink_ext_ack *extack);
int l4lb_nl_fill_policy(struct sk_buff *skb, const struct l4lb_policy *policy);
int l4lb_nl_fill_bands(struct sk_buff *skb, const struct l4lb_service *svc);

#endif /* _L4LB_NETLINK_POLICY_H */

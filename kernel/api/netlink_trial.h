/* SPDX-License-Identifier: GPL-2.0 */
/* TRY_SCHEDULER of family L4LB. */
#ifndef _L4LB_NETLINK_TRIAL_H
#define _L4LB_NETLINK_TRIAL_H

#include "l4lb.h"

#include <net/genetlink.h>

extern const struct nla_policy l4lb_nl_trial_policy[L4LB_TRIAL_ATTR_MAX + 1];

int l4lb_nl_start_trial(struct netlink_callback *cb);
int l4lb_nl_dump_trial(struct sk_buff *skb, struct netlink_callback *cb);
int l4lb_nl_done_trial(struct netlink_callback *cb);

#endif /* _L4LB_NETLINK_TRIAL_H */

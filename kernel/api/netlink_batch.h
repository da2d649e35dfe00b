/* SPDX-License-Identifier: GPL-2.0 */
/* SET_SERVICES of family L4LB. */
#ifndef _L4LB_NETLINK_BATCH_H
#define _L4LB_NETLINK_BATCH_H

#include <net/genetlink.h>

int l4lb_nl_set_services(struct sk_buff *skb, struct genl_info *info);

#endif /* _L4LB_NETLINK_BATCH_H */

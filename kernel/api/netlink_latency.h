/* SPDX-License-Identifier: GPL-2.0 */
/* GET_LATENCY of family L4LB. */
#ifndef _L4LB_NETLINK_LATENCY_H
#define _L4LB_NETLINK_LATENCY_H

#include <net/genetlink.h>

int l4lb_nl_dump_latency(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* _L4LB_NETLINK_LATENCY_H */

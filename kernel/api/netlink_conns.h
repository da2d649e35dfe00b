/* SPDX-License-Identifier: GPL-2.0 */
/* GET_CONNS and KILL_CONNS of family L4LB. */
#ifndef _L4LB_NETLINK_CONNS_H
#define _L4LB_NETLINK_CONNS_H

#include "l4lb.h"

#include <net/genetlink.h>

extern const struct nla_policy l4lb_nl_conn_policy[L4LB_CONN_ATTR_FLAGS + 1];

int l4lb_nl_start_conns(struct netlink_callback *cb);
int l4lb_nl_dump_conns(struct sk_buff *skb, struct netlink_callback *cb);
int l4lb_nl_done_conns(struct netlink_callback *cb);
int l4lb_nl_kill_conns(struct sk_buff *skb, struct genl_info *info);

#endif /* _L4LB_NETLINK_CONNS_H */

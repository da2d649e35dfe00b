/* SPDX-License-Identifier: GPL-2.0 */
/* EXPORT_CONNS and IMPORT_CONNS of family L4LB. */
#ifndef _L4LB_NETLINK_HANDOVER_H
#define _L4LB_NETLINK_HANDOVER_H

#include "l4lb.h"

#include <net/genetlink.h>

extern const struct nla_policy
l4lb_nl_handover_policy[L4LB_HANDOVER_ATTR_MESSAGE + 1];

int l4lb_nl_start_export(struct netlink_callback *cb);
int l4lb_nl_dump_export(struct sk_buff *skb, struct netlink_callback *cb);
int l4lb_nl_done_export(struct netlink_callback *cb);
int l4lb_nl_import_conns(struct sk_buff *skb, struct genl_info *info);

#endif /* _L4LB_NETLINK_HANDOVER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* SET_SERVICES of family L4LB. */
#ifndef _L4LB_NETLINK_BATCH_H
#define _L4LB_NETLINK_BATCH_H

#include "service/server.h"

#include <net/genetlink.h>

/* A real server as an element of DESTS; @whole: with all settings. */
int l4lb_nl_parse_ext_dest(struct l4lb_server_config *cfg, u16 svc_af,
			   const struct nlattr *nest, bool whole,
			   struct netlink_ext_ack *extack);
int l4lb_nl_set_services(struct sk_buff *skb, struct genl_info *info);

#endif /* _L4LB_NETLINK_BATCH_H */

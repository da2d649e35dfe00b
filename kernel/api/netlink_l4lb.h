/* SPDX-License-Identifier: GPL-2.0 */
/* The netlink family L4LB. */
#ifndef _L4LB_NETLINK_L4LB_H
#define _L4LB_NETLINK_L4LB_H

#include "l4lb.h"
#include "service/service.h"

#include <net/genetlink.h>

int l4lb_ext_init(void);
void l4lb_ext_exit(void);

extern struct genl_family l4lb_ext_family;
extern const struct nla_policy l4lb_nl_key_policy[IPVS_SVC_ATTR_FWMARK + 1];

/* l4lb_nl_parse_key() with the stricter checks of this family. */
int l4lb_nl_parse_ext_key(struct l4lb_svc_key *key, struct nlattr **tb,
			  const struct nlattr *nest,
			  struct netlink_ext_ack *extack);

#endif /* _L4LB_NETLINK_L4LB_H */

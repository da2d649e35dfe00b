/* SPDX-License-Identifier: GPL-2.0 */
/* The netlink family L4LB. */
#ifndef _L4LB_NETLINK_L4LB_H
#define _L4LB_NETLINK_L4LB_H

#include "l4lb.h"
#include "service/service.h"

#include <net/genetlink.h>

int l4lb_ext_init(void);
void l4lb_ext_exit(void);

/* Its multicast groups. */
enum {
	L4LB_NL_EVENTS,
	L4LB_NL_LOG,
};

extern struct genl_family l4lb_ext_family;
extern const struct nla_policy l4lb_nl_key_policy[L4LB_SVC_ATTR_RANGE + 1];

/* l4lb_nl_parse_key() with the stricter checks of this family; @tb: to RANGE. */
int l4lb_nl_parse_ext_key(struct l4lb_svc_key *key, struct nlattr **tb,
			  const struct nlattr *nest,
			  struct netlink_ext_ack *extack);

/* The service that a request names, by its attribute SERVICE. */
int l4lb_nl_parse_service_name(struct l4lb_svc_key *key, struct nlattr **attrs,
			       struct netlink_ext_ack *extack);

/* A reply to be filled and sent; NULL if there is no memory. */
struct sk_buff *l4lb_nl_reply_new(struct genl_info *info, void **hdr);
/* Send the reply; if filling it failed with @err, free it. */
int l4lb_nl_reply_send(struct genl_info *info, struct sk_buff *msg, void *hdr,
		       int err);

#endif /* _L4LB_NETLINK_L4LB_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Policies of services in messages of family L4LB. */
#ifndef _L4LB_NETLINK_POLICY_H
#define _L4LB_NETLINK_POLICY_H

#include "service/service.h"

#include <net/genetlink.h>

/* The nest POLICY of family L4LB.  Parse: @nest is required; the values it has
 * are checked and replace those in @policy; @af: the service's family.  Fill: all values.
 */
int l4lb_nl_parse_policy(struct l4lb_policy *policy, const struct nlattr *nest,
			 u8 af, struct netlink_ext_ack *extack);
int l4lb_nl_fill_policy(struct sk_buff *skb, const struct l4lb_policy *policy);

/* OWNER and PROTECTED, whose types and lengths genetlink has checked.  Parse: those
 * that are there replace the ones in @claim.  Fill: those that are set.
 */
int l4lb_nl_parse_claim(struct l4lb_claim *claim, struct nlattr **attrs,
			struct netlink_ext_ack *extack);
int l4lb_nl_fill_claim(struct sk_buff *skb, const struct l4lb_claim *claim);
/* What packets have counted because of the policy. */
int l4lb_nl_fill_policy_live(struct sk_buff *skb, const struct l4lb_service *svc);

#endif /* _L4LB_NETLINK_POLICY_H */

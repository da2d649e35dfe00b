/* SPDX-License-Identifier: GPL-2.0 */
/* The range of a service in messages of family L4LB. */
#ifndef _L4LB_NETLINK_RANGE_H
#define _L4LB_NETLINK_RANGE_H

#include "l4lb.h"
#include "service/service.h"

#include <net/netlink.h>

extern const struct nla_policy l4lb_nl_range_policy[L4LB_RANGE_ATTR_MAX + 1];

/* Parse the key of a service that has a RANGE; @tb: AF to RANGE.  The caller has zeroed
 * @key.  Return: 0, or a negative errno with a sentence.
 */
int l4lb_nl_parse_range(struct l4lb_svc_key *key, struct nlattr **tb,
			struct netlink_ext_ack *extack);
int l4lb_nl_fill_range(struct sk_buff *skb, const struct l4lb_svc_key *key);

#endif /* _L4LB_NETLINK_RANGE_H */

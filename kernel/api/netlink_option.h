/* SPDX-License-Identifier: GPL-2.0 */
/* Options of schedulers in messages of family L4LB. */
#ifndef _L4LB_NETLINK_OPTION_H
#define _L4LB_NETLINK_OPTION_H

#include "service/service.h"

#include <net/genetlink.h>

extern const struct nla_policy l4lb_nl_option_policy[L4LB_OPTION_ATTR_VALUE + 1];

/* One { NAME, VALUE } of the scheduler @ops, which may be NULL, into @value;
 * @seen has a bit for each that was named.
 */
int l4lb_nl_parse_option(const struct l4lb_sched_ops *ops, u32 *value,
			 unsigned long *seen, const struct nlattr *nest,
			 struct netlink_ext_ack *extack);
/* Refuses @name, with the options that @ops has; -EINVAL. */
int l4lb_nl_unknown_option(const struct l4lb_sched_ops *ops,
			   const struct nlattr *name,
			   struct netlink_ext_ack *extack);

#endif /* _L4LB_NETLINK_OPTION_H */

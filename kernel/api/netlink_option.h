/* SPDX-License-Identifier: GPL-2.0 */
/* Options of schedulers in messages of family L4LB. */
#ifndef _L4LB_NETLINK_OPTION_H
#define _L4LB_NETLINK_OPTION_H

#include "service/option.h"
#include "l4lb.h"

#include <net/genetlink.h>

extern const struct nla_policy l4lb_nl_option_policy[L4LB_OPTION_ATTR_PATH + 1];

/* Parse one { NAME, VALUE or KEY or FD and PATH } for the scheduler @ops, which may be
 * NULL, into @values, which the caller releases in any case.  @seen has a bit for each
 * option that was named already.
 */
int l4lb_nl_parse_option(const struct l4lb_sched_ops *ops,
			 struct l4lb_sched_values *values, unsigned long *seen,
			 const struct nlattr *nest,
			 struct netlink_ext_ack *extack);
/* Refuse @name; the message lists the options of @ops.  Return: -EINVAL. */
int l4lb_nl_unknown_option(const struct l4lb_sched_ops *ops,
			   const struct nlattr *name,
			   struct netlink_ext_ack *extack);

#endif /* _L4LB_NETLINK_OPTION_H */

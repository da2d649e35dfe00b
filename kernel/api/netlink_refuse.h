/* SPDX-License-Identifier: GPL-2.0 */
/* How a request is refused. */
#ifndef _L4LB_NETLINK_REFUSE_H
#define _L4LB_NETLINK_REFUSE_H

#include <linux/netlink.h>

/**
 * l4lb_nl_refuse() - say what is wrong with a request
 * @extack: gets @sentence and @attr; NULL at the start of a dump in Linux 6.1
 * @attr: the attribute that is wrong, or NULL
 * @sentence: a constant, because it outlives the request
 *
 * Return: -EINVAL.
 */
static inline int l4lb_nl_refuse(struct netlink_ext_ack *extack,
				 const struct nlattr *attr, const char *sentence)
{
	if (extack) {
		extack->_msg = sentence;
		NL_SET_BAD_ATTR(extack, attr);
	}
	return -EINVAL;
}

#endif /* _L4LB_NETLINK_REFUSE_H */

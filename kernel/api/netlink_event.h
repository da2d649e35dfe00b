/* SPDX-License-Identifier: GPL-2.0 */
/* Events of family L4LB. */
#ifndef _L4LB_NETLINK_EVENT_H
#define _L4LB_NETLINK_EVENT_H

#include "service/event.h"

#include <net/genetlink.h>

/* Configuration mutex held, may sleep. */
void l4lb_nl_send_event(struct l4lb_net *ln,
			const struct l4lb_happening *event);
int l4lb_nl_get_event(struct sk_buff *skb, struct genl_info *info);

#endif /* _L4LB_NETLINK_EVENT_H */

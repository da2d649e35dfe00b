/* SPDX-License-Identifier: GPL-2.0 */
/* Commands of family IPVS about synchronisation daemons. */
#ifndef _L4LB_NETLINK_SYNC_H
#define _L4LB_NETLINK_SYNC_H

#include <net/genetlink.h>

#include "sync/daemon.h"

int l4lb_nl_new_daemon(struct sk_buff *skb, struct genl_info *info);
int l4lb_nl_del_daemon(struct sk_buff *skb, struct genl_info *info);

/* Writes attribute DAEMON.  Return: 0, or -EMSGSIZE with part of it written. */
int l4lb_nl_fill_daemon(struct sk_buff *skb,
			const struct l4lb_sync_config *config);

/* Connections may come before the first service.  May sleep. */
int l4lb_nl_prepare_receiver(struct l4lb_net *ln, struct genl_info *info);

#endif /* _L4LB_NETLINK_SYNC_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Dumps of family L4LB with a message for each real server. */
#ifndef _L4LB_NETLINK_SERVERS_H
#define _L4LB_NETLINK_SERVERS_H

#include "service/server.h"

#include <net/genetlink.h>

/**
 * struct l4lb_nl_server_dump - what such a dump lists
 * @cmd: command of its messages
 * @lists: does it list this real server?
 * @fill: what it says of one, behind the name of its service
 *
 * The functions are called with the configuration mutex held.
 */
struct l4lb_nl_server_dump {
	u8	cmd;
	bool	(*lists)(const struct l4lb_server *server);
	int	(*fill)(struct sk_buff *skb, const struct l4lb_server *server);
};

/* For genl_ops.start of a dump that may be of one service only: the one that the
 * attribute SERVICE names, if there is any.
 */
int l4lb_nl_start_servers(struct netlink_callback *cb);
int l4lb_nl_dump_servers(struct sk_buff *skb, struct netlink_callback *cb,
			 const struct l4lb_nl_server_dump *dump);

#endif /* _L4LB_NETLINK_SERVERS_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Sockets of synchronisation. */
#ifndef _L4LB_SYNC_SOCKET_H
#define _L4LB_SYNC_SOCKET_H

#include <linux/net.h>

#include "sync/daemon.h"

/**
 * l4lb_sync_socket() - open a daemon's socket
 * @ln: its namespace
 * @config: the daemon's configuration, defaults filled in
 * @dev: device of the group
 * @index: number of the thread, which is added to the port
 *
 * Takes RTNL.  Return: a socket in the namespace, which holds no reference on
 * it, or an ERR_PTR().
 */
struct socket *l4lb_sync_socket(struct l4lb_net *ln,
				const struct l4lb_sync_config *config,
				const struct net_device *dev,
				unsigned int index);

/* Likewise for peers of a family: on all addresses, with a hop limit of 255. */
struct socket *l4lb_sync_peer_socket(struct l4lb_net *ln, sa_family_t family,
				     __be16 port);

#endif /* _L4LB_SYNC_SOCKET_H */

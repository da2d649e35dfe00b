/* SPDX-License-Identifier: GPL-2.0 */
/* Sockets for peers, and the threads that receive from them. */
#ifndef _L4LB_SYNC_LINK_H
#define _L4LB_SYNC_LINK_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>

#include "sync/peer.h"

/**
 * struct l4lb_sync_link - a socket of one family
 * @peers: of the namespace
 * @sock: bound to the port, on all addresses
 * @task: its thread
 * @data: room for a datagram
 */
struct l4lb_sync_link {
	struct l4lb_sync_peers	*peers;
	struct socket		*sock;
	struct task_struct	*task;
	u8			*data;
};

static inline int l4lb_sync_address_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

/* The socket for messages to @addr.  @peers->lock held. */
static inline struct socket *
l4lb_sync_link_socket(const struct l4lb_sync_peers *peers,
		      const struct sockaddr_storage *addr)
{
	return peers->link[addr->ss_family == AF_INET6]->sock;
}

/* Takes RTNL; may sleep.  An ERR_PTR(), or a link that receives at once. */
struct l4lb_sync_link *l4lb_sync_link_open(struct l4lb_sync_peers *peers,
					   sa_family_t family);
/* Returns when its thread is over.  @link: or NULL. */
void l4lb_sync_link_close(struct l4lb_sync_link *link);

#endif /* _L4LB_SYNC_LINK_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets of synchronisation.  Those for multicast have the options that
 * ip_vs's have: a receiver is bound to group, port and device, so unicast never
 * reaches it; a sender may fragment, and does not hear itself.
 */
#include "sync/socket.h"

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <net/sock.h>

static int set(struct socket *sock, int level, int option, void *value,
	       unsigned int len)
{
	return sock->ops->setsockopt(sock, level, option,
				     KERNEL_SOCKPTR(value), len);
}

static int set_int(struct socket *sock, int level, int option, int value)
{
	return set(sock, level, option, &value, sizeof(value));
}

/* Sysctl sync_sock_size; without it, the stack's default. */
static int set_size(const struct l4lb_net *ln, struct socket *sock, int option)
{
	int size = READ_ONCE(ln->sysctl.sync_sock_size);

	if (size <= 0)
		return 0;
	return sock_setsockopt(sock, SOL_SOCKET, option, KERNEL_SOCKPTR(&size),
			       sizeof(size));
}

/* The group's address and the thread's port.  Returns its length. */
static int group_address(struct sockaddr_storage *to,
			 const struct l4lb_sync_config *config, int ifindex,
			 unsigned int index)
{
	__be16 port = htons(config->port + index);

	memset(to, 0, sizeof(*to));
	if (config->af == AF_INET6) {
		*(struct sockaddr_in6 *)to = (struct sockaddr_in6){
			.sin6_family	= AF_INET6,
			.sin6_port	= port,
			.sin6_addr	= config->group.in6,
			.sin6_scope_id	= ifindex,
		};
		return sizeof(struct sockaddr_in6);
	}
	*(struct sockaddr_in *)to = (struct sockaddr_in){
		.sin_family		= AF_INET,
		.sin_port		= port,
		.sin_addr.s_addr	= config->group.ip,
	};
	return sizeof(struct sockaddr_in);
}

static int set_sender_ipv4(struct socket *sock, int ttl, int ifindex)
{
	struct ip_mreqn device = { .imr_ifindex = ifindex };

	return set(sock, SOL_IP, IP_MULTICAST_IF, &device, sizeof(device)) ?:
	       set_int(sock, SOL_IP, IP_MULTICAST_LOOP, 0) ?:
	       set_int(sock, SOL_IP, IP_MULTICAST_TTL, ttl) ?:
	       set_int(sock, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
}

static int set_sender_ipv6(struct socket *sock, int ttl, int ifindex)
{
	return set_int(sock, SOL_IPV6, IPV6_MULTICAST_IF, ifindex) ?:
	       set_int(sock, SOL_IPV6, IPV6_MULTICAST_LOOP, 0) ?:
	       set_int(sock, SOL_IPV6, IPV6_MULTICAST_HOPS, ttl) ?:
	       set_int(sock, SOL_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
}

/* Messages come from the device's own address, not from one of another device.
 * Without one, the stack chooses.
 */
static int bind_source(struct socket *sock, const struct net_device *dev)
{
	struct sockaddr_in from = { .sin_family = AF_INET };

	from.sin_addr.s_addr = inet_select_addr(dev, 0, RT_SCOPE_UNIVERSE);
	if (!from.sin_addr.s_addr)
		pr_warn("sync: %s has no address: give it one, or messages have another device's\n",
			dev->name);
	return kernel_bind(sock, (struct sockaddr *)&from, sizeof(from));
}

static int open_sender(struct l4lb_net *ln, struct socket *sock,
		       const struct l4lb_sync_config *config,
		       const struct net_device *dev, unsigned int index)
{
	struct sockaddr_storage to;
	int err, len;

	if (config->af == AF_INET6)
		err = set_sender_ipv6(sock, config->ttl, dev->ifindex);
	else
		err = set_sender_ipv4(sock, config->ttl, dev->ifindex) ?:
		      bind_source(sock, dev);
	err = err ?: set_size(ln, sock, SO_SNDBUF);
	if (err)
		return err;
	len = group_address(&to, config, dev->ifindex, index);
	return kernel_connect(sock, (struct sockaddr *)&to, len, 0);
}

static int join(struct socket *sock, const struct l4lb_sync_config *config,
		int ifindex)
{
	struct ipv6_mreq ipv6 = {
		.ipv6mr_multiaddr	= config->group.in6,
		.ipv6mr_ifindex		= ifindex,
	};
	struct ip_mreqn ipv4 = {
		.imr_multiaddr.s_addr	= config->group.ip,
		.imr_ifindex		= ifindex,
	};

	if (config->af == AF_INET6)
		return set(sock, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &ipv6,
			   sizeof(ipv6));
	return set(sock, SOL_IP, IP_ADD_MEMBERSHIP, &ipv4, sizeof(ipv4));
}

static int open_receiver(struct l4lb_net *ln, struct socket *sock,
			 const struct l4lb_sync_config *config,
			 const struct net_device *dev, unsigned int index)
{
	struct sockaddr_storage to;
	int err, len;

	sock_set_reuseaddr(sock->sk);
	err = set_size(ln, sock, SO_RCVBUF) ?:
	      sock_bindtoindex(sock->sk, dev->ifindex, true);
	if (err)
		return err;
	len = group_address(&to, config, dev->ifindex, index);
	return kernel_bind(sock, (struct sockaddr *)&to, len) ?:
	       join(sock, config, dev->ifindex);
}

struct socket *l4lb_sync_socket(struct l4lb_net *ln,
				const struct l4lb_sync_config *config,
				const struct net_device *dev,
				unsigned int index)
{
	struct socket *sock;
	int err;

	err = sock_create_kern(ln->net, config->af, SOCK_DGRAM, IPPROTO_UDP,
			       &sock);
	if (err)
		return ERR_PTR(err);
	if (config->state == IP_VS_STATE_MASTER)
		err = open_sender(ln, sock, config, dev, index);
	else
		err = open_receiver(ln, sock, config, dev, index);
	if (!err)
		return sock;
	sock_release(sock);
	return ERR_PTR(err);
}

/* ---- peers ---- */

/* Bytes; the stack doubles it for what a datagram takes besides. */
#define PEER_RCVBUF	(512 << 10)

static int open_peer_ipv4(struct socket *sock, __be16 port)
{
	struct sockaddr_in here = {
		.sin_family	= AF_INET,
		.sin_port	= port,
	};

	return set_int(sock, SOL_IP, IP_TTL, 255) ?:
	       set_int(sock, SOL_IP, IP_RECVTTL, 1) ?:
	       set_int(sock, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT) ?:
	       kernel_bind(sock, (struct sockaddr *)&here, sizeof(here));
}

static int open_peer_ipv6(struct socket *sock, __be16 port)
{
	struct sockaddr_in6 here = {
		.sin6_family	= AF_INET6,
		.sin6_port	= port,
	};

	return set_int(sock, SOL_IPV6, IPV6_V6ONLY, 1) ?:
	       set_int(sock, SOL_IPV6, IPV6_UNICAST_HOPS, 255) ?:
	       set_int(sock, SOL_IPV6, IPV6_RECVHOPLIMIT, 1) ?:
	       set_int(sock, SOL_IPV6, IPV6_MTU_DISCOVER,
		       IPV6_PMTUDISC_DONT) ?:
	       kernel_bind(sock, (struct sockaddr *)&here, sizeof(here));
}

/* A resync without a limit comes at a rate of 5,000 messages a second: they must
 * have room while the thread waits for a processor.
 */
static int set_peer_sizes(const struct l4lb_net *ln, struct socket *sock)
{
	int err = set_size(ln, sock, SO_SNDBUF);

	if (err || READ_ONCE(ln->sysctl.sync_sock_size) > 0)
		return err ?: set_size(ln, sock, SO_RCVBUF);
	sock_set_rcvbuf(sock->sk, PEER_RCVBUF);
	return 0;
}

struct socket *l4lb_sync_peer_socket(struct l4lb_net *ln, sa_family_t family,
				     __be16 port)
{
	struct socket *sock;
	int err;

	err = sock_create_kern(ln->net, family, SOCK_DGRAM, IPPROTO_UDP, &sock);
	if (err)
		return ERR_PTR(err);
	err = set_peer_sizes(ln, sock);
	if (!err && family == AF_INET6)
		err = open_peer_ipv6(sock, port);
	else if (!err)
		err = open_peer_ipv4(sock, port);
	if (!err)
		return sock;
	sock_release(sock);
	return ERR_PTR(err);
}

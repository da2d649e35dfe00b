/* SPDX-License-Identifier: GPL-2.0 */
/* Devices, addresses, neighbours and routes of the network namespace. */
#ifndef IPVSCTL_KERN_NET_H
#define IPVSCTL_KERN_NET_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ident.h"

struct net_link {
	int index;
	char name[IF_NAMESIZE];
	unsigned int flags;	/* IFF_* */
	unsigned int type;	/* ARPHRD_* */
	uint32_t mtu;
	uint8_t mac[6];
};

struct net_addr {
	uint16_t af;
	struct ip addr;
	int link;
	unsigned int flags;	/* IFA_F_* */
};

struct net_neigh {
	int link;
	uint16_t af;
	struct ip addr;
	int state;		/* NUD_* */
	bool has_mac;
	uint8_t mac[6];
};

struct net {
	struct nl_sock *sock;
	struct net_link *links;
	size_t nlinks;
	struct net_addr *addrs;
	size_t naddrs;
	struct net_neigh *neighs;	/* sorted by device, family, address */
	size_t nneighs;
};

enum net_route_kind { ROUTE_NONE, ROUTE_LOCAL, ROUTE_UNICAST };

struct net_route {
	enum net_route_kind kind;
	int link;
	bool gateway;
	uint16_t next_af;
	struct ip next;		/* the gateway, or the destination */
	uint32_t mtu;		/* of the way, as far as this machine knows */
	struct ip source;	/* our address on it, or all zeroes */
};

/* Returns 0 or -1; net_free() in any case. */
int net_read(struct net *n);
void net_free(struct net *n);

const struct net_link *net_link(const struct net *n, int index);
/* The address @addr of this machine, or NULL. */
const struct net_addr *net_addr(const struct net *n, uint16_t af,
				const struct ip *addr);
const struct net_neigh *net_neigh(const struct net *n, int link, uint16_t af,
				  const struct ip *addr);
/* A neighbour on @link with this link-layer address, or NULL. */
const struct net_neigh *net_neigh_by_mac(const struct net *n, int link,
					 uint16_t af, const uint8_t mac[6]);

/* A device whose neighbours are asked for their link-layer addresses. */
bool net_link_resolves(const struct net_link *link);

/* The way a packet from this machine to @to would take. */
void net_route(const struct net *n, uint16_t af, const struct ip *to,
	       struct net_route *r);

#endif

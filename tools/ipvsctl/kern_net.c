// SPDX-License-Identifier: GPL-2.0
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>

#include "kern_net.h"

enum { ANSWER_SECS = 5 };

/* Grows an array of @size bytes an element by a zeroed one. */
static void *append(void *array, size_t *n, size_t size)
{
	void **v = array;
	char *more = reallocarray(*v, *n + 1, size);

	if (!more)
		return NULL;
	*v = more;
	return memset(more + size * (*n)++, 0, size);
}

static bool take_addr(struct nl_addr *from, uint16_t *af, struct ip *ip)
{
	if (!from || nl_addr_get_len(from) > sizeof(ip->b))
		return false;
	*af = (uint16_t)nl_addr_get_family(from);
	if (*af != AF_INET && *af != AF_INET6)
		return false;
	memset(ip, 0, sizeof(*ip));
	memcpy(ip->b, nl_addr_get_binary_addr(from), nl_addr_get_len(from));
	return true;
}

static bool take_mac(struct nl_addr *from, uint8_t mac[6])
{
	if (!from || nl_addr_get_len(from) != 6)
		return false;
	memcpy(mac, nl_addr_get_binary_addr(from), 6);
	return true;
}

static void take_link(struct nl_object *object, void *arg)
{
	struct rtnl_link *from = (struct rtnl_link *)object;
	struct net *n = arg;
	struct net_link *link = append(&n->links, &n->nlinks, sizeof(*link));

	if (!link)
		return;
	link->index = rtnl_link_get_ifindex(from);
	snprintf(link->name, sizeof(link->name), "%s", rtnl_link_get_name(from));
	link->flags = rtnl_link_get_flags(from);
	link->type = rtnl_link_get_arptype(from);
	link->mtu = rtnl_link_get_mtu(from);
	take_mac(rtnl_link_get_addr(from), link->mac);
}

static void take_address(struct nl_object *object, void *arg)
{
	struct rtnl_addr *from = (struct rtnl_addr *)object;
	struct net_addr *addr, got = { 0 };
	struct net *n = arg;

	if (!take_addr(rtnl_addr_get_local(from), &got.af, &got.addr))
		return;
	addr = append(&n->addrs, &n->naddrs, sizeof(*addr));
	if (!addr)
		return;
	got.link = rtnl_addr_get_ifindex(from);
	got.flags = rtnl_addr_get_flags(from);
	*addr = got;
}

static void take_neigh(struct nl_object *object, void *arg)
{
	struct rtnl_neigh *from = (struct rtnl_neigh *)object;
	struct net_neigh *neigh, got = { 0 };
	struct net *n = arg;

	if (!take_addr(rtnl_neigh_get_dst(from), &got.af, &got.addr))
		return;
	neigh = append(&n->neighs, &n->nneighs, sizeof(*neigh));
	if (!neigh)
		return;
	got.link = rtnl_neigh_get_ifindex(from);
	got.state = rtnl_neigh_get_state(from);
	got.has_mac = take_mac(rtnl_neigh_get_lladdr(from), got.mac);
	*neigh = got;
}

static int cmp_neigh(const void *a, const void *b)
{
	const struct net_neigh *x = a, *y = b;

	if (x->link != y->link)
		return x->link < y->link ? -1 : 1;
	if (x->af != y->af)
		return x->af < y->af ? -1 : 1;
	return memcmp(x->addr.b, y->addr.b, sizeof(x->addr.b));
}

static void take_all(struct nl_cache *cache,
		     void (*take)(struct nl_object *object, void *arg),
		     struct net *n)
{
	nl_cache_foreach(cache, take, n);
	nl_cache_free(cache);
}

int net_read(struct net *n)
{
	struct timeval wait = { .tv_sec = ANSWER_SECS };
	struct nl_cache *cache;

	memset(n, 0, sizeof(*n));
	n->sock = nl_socket_alloc();
	if (!n->sock || nl_connect(n->sock, NETLINK_ROUTE) < 0)
		return -1;
	setsockopt(nl_socket_get_fd(n->sock), SOL_SOCKET, SO_RCVTIMEO, &wait,
		   sizeof(wait));
	if (rtnl_link_alloc_cache(n->sock, AF_UNSPEC, &cache) < 0)
		return -1;
	take_all(cache, take_link, n);
	if (rtnl_addr_alloc_cache(n->sock, &cache) < 0)
		return -1;
	take_all(cache, take_address, n);
	if (rtnl_neigh_alloc_cache(n->sock, &cache) < 0)
		return -1;
	take_all(cache, take_neigh, n);
	if (n->nneighs)
		qsort(n->neighs, n->nneighs, sizeof(*n->neighs), cmp_neigh);
	return 0;
}

void net_free(struct net *n)
{
	nl_socket_free(n->sock);
	free(n->links);
	free(n->addrs);
	free(n->neighs);
	memset(n, 0, sizeof(*n));
}

const struct net_link *net_link(const struct net *n, int index)
{
	size_t i;

	for (i = 0; i < n->nlinks; i++)
		if (n->links[i].index == index)
			return &n->links[i];
	return NULL;
}

const struct net_addr *net_addr(const struct net *n, uint16_t af,
				const struct ip *addr)
{
	size_t i;

	for (i = 0; i < n->naddrs; i++)
		if (n->addrs[i].af == af && ip_equal(&n->addrs[i].addr, addr))
			return &n->addrs[i];
	return NULL;
}

const struct net_neigh *net_neigh(const struct net *n, int link, uint16_t af,
				  const struct ip *addr)
{
	struct net_neigh key = { .link = link, .af = af, .addr = *addr };

	return n->nneighs ? bsearch(&key, n->neighs, n->nneighs,
				    sizeof(key), cmp_neigh) : NULL;
}

const struct net_neigh *net_neigh_by_mac(const struct net *n, int link,
					 uint16_t af, const uint8_t mac[6])
{
	size_t i;

	for (i = 0; i < n->nneighs; i++)
		if (n->neighs[i].link == link && n->neighs[i].af == af &&
		    n->neighs[i].has_mac && !memcmp(n->neighs[i].mac, mac, 6))
			return &n->neighs[i];
	return NULL;
}

bool net_link_resolves(const struct net_link *link)
{
	return link && link->type == ARPHRD_ETHER &&
	       !(link->flags & (IFF_NOARP | IFF_LOOPBACK));
}

static void take_nexthop(const struct net *n, struct rtnl_route *from,
			 struct net_route *r)
{
	struct rtnl_nexthop *hop = rtnl_route_nexthop_n(from, 0);
	const struct net_link *link;
	uint16_t af;

	if (!hop)
		return;
	r->link = rtnl_route_nh_get_ifindex(hop);
	r->gateway = take_addr(rtnl_route_nh_get_gateway(hop), &r->next_af,
			       &r->next) ||
		     take_addr(rtnl_route_nh_get_via(hop), &r->next_af, &r->next);
	take_addr(rtnl_route_get_pref_src(from), &af, &r->source);
	link = net_link(n, r->link);
	if (rtnl_route_get_metric(from, RTAX_MTU, &r->mtu) < 0 || !r->mtu)
		r->mtu = link ? link->mtu : 0;
}

void net_route(const struct net *n, uint16_t af, const struct ip *to,
	       struct net_route *r)
{
	struct nl_addr *dst = nl_addr_build(af, (void *)to->b,
					    af == AF_INET ? 4 : 16);
	struct rtnl_route *found = NULL;

	*r = (struct net_route){ .kind = ROUTE_NONE, .next_af = af, .next = *to };
	if (dst && rtnl_route_lookup(n->sock, dst, &found) >= 0 && found) {
		int type = rtnl_route_get_type(found);

		if (type == RTN_LOCAL)
			r->kind = ROUTE_LOCAL;
		else if (type == RTN_UNICAST)
			r->kind = ROUTE_UNICAST;
		take_nexthop(n, found, r);
	}
	rtnl_route_put(found);
	nl_addr_put(dst);
}

/* SPDX-License-Identifier: GPL-2.0 */
/* Output routes of a real server, cached. */
#ifndef _L4LB_ROUTE_H
#define _L4LB_ROUTE_H

#include <net/arp.h>
#include <net/ndisc.h>

#include "service/dst.h"
#include "service/hop.h"
#include "service/server.h"

/**
 * struct l4lb_route - a route that was valid when it was looked up
 * @dst: the route; a reference is held
 * @to: the real server
 * @af: family of @to
 * @plain: it leads to the wire of an Ethernet device as it is, not through IPsec or a
 *	tunnel of the routing table
 * @cookie: for dst_check()
 * @saddr: source address for this route; the outer source of a tunnel
 * @neigh: its next hop, while packets of the fast path use it; a reference is held
 * @local: the real server is this host
 * @hop: the address of @neigh, see l4lb_route_hop()
 * @slot: in l4lb_server.route, where it is cached
 * @device: in whose list it is; of l4lb_net.route_lock, as all below
 * @node: in that list
 * @kept: in l4lb_net.route_neighs, with @neigh
 * @rcu: to free it
 *
 * Packets need the first line only: all before @slot.
 */
struct l4lb_route {
	struct dst_entry	*dst;
	union nf_inet_addr	to;
	u8			af;
	bool			local;
	bool			plain;
	u32			cookie;
	union nf_inet_addr	saddr;
	struct neighbour __rcu	*neigh;
	union l4lb_hop		hop;
	struct l4lb_route __rcu	**slot;
	struct l4lb_route_device *device;
	struct list_head	node;
	struct list_head	kept;
	struct rcu_head		rcu;
} ____cacheline_aligned;

static_assert(offsetof(struct l4lb_route, slot) <= L1_CACHE_BYTES);

struct l4lb_route *l4lb_route_renew(struct l4lb_server *server, bool known_nh);

/* The route to @server for forwarding @method, cached if that is still valid.
 * RCU; the result is valid in the same RCU section.  ERR_PTR(): -EHOSTUNREACH,
 * no route; -ENOMEM, there may be one.
 */
static __always_inline struct l4lb_route *
l4lb_route_get(struct l4lb_server *server, u8 method)
{
	/* Direct routing leaves the VIP in the packet, which must not be
	 * taken for the next hop.  @method is the connection's: the real
	 * server's may have changed since.
	 */
	const bool known_nh = method == IP_VS_CONN_F_DROUTE;
	struct l4lb_route *route = rcu_dereference(server->route[known_nh]);

	if (likely(route && l4lb_dst_valid(route->dst, route->cookie)))
		return route;
	return l4lb_route_renew(server, known_nh);
}

/* The neighbour that a packet for @to, of family @af, is sent to, or NULL.  RCU,
 * BH off.
 */
static __always_inline struct neighbour *
l4lb_neigh_of(const struct dst_entry *dst, u8 af, const union nf_inet_addr *to)
{
	const struct rtable *rt = dst_rtable(dst);

	if (af == AF_INET6)
		return __ipv6_neigh_lookup_noref(dst->dev,
						 rt6_nexthop(dst_rt6_info(dst),
							     &to->in6));
	if (rt->rt_gw_family == AF_INET6)
		return __ipv6_neigh_lookup_noref(dst->dev, &rt->rt_gw6);
	return __ipv4_neigh_lookup_noref(dst->dev, (__force u32)
		(rt->rt_gw_family ? rt->rt_gw4 : to->ip));
}

/* Looks it up, and keeps it for l4lb_route_neigh(). */
struct neighbour *l4lb_route_find_neigh(struct l4lb_net *ln,
					struct l4lb_route *route);

/* The same for a packet that takes @route; none is dead.  RCU, BH off. */
static __always_inline struct neighbour *
l4lb_route_neigh(struct l4lb_net *ln, struct l4lb_route *route)
{
	struct neighbour *neigh = rcu_dereference(route->neigh);

	return likely(neigh && !READ_ONCE(neigh->dead)) ?
	       neigh : l4lb_route_find_neigh(ln, route);
}

/* Keeps the address of @neigh in @route, and returns it. */
union l4lb_hop l4lb_route_find_hop(struct l4lb_net *ln, struct l4lb_route *route,
				   const struct neighbour *neigh);

/* Where a frame by @route, which is plain, goes; @neigh is from l4lb_route_neigh().
 * RCU, BH off.
 *
 * An address that has changed 32,768 times would be taken for the old one, but it is
 * kept for NEIGH_KEPT only.
 */
static __always_inline union l4lb_hop
l4lb_route_hop(struct l4lb_net *ln, struct l4lb_route *route,
	       const struct neighbour *neigh)
{
	union l4lb_hop hop;

	smp_rmb();	/* the neighbour first; pairs with forget_hop() */
	hop.word = READ_ONCE(route->hop.word);
	return likely(hop.changes == l4lb_neigh_changes(neigh)) ? hop :
	       l4lb_route_find_hop(ln, route, neigh);
}

/* Forget the cached routes: @server is freed, or a path's MTU has changed. */
void l4lb_route_flush(struct l4lb_server *server);

/* The same for all servers of a namespace that is going; none is cached again.
 * Process context.
 */
void l4lb_route_flush_all(struct l4lb_net *ln);

/* The same two errors, from one of the kernel's lookups. */
static inline int l4lb_route_error(int err)
{
	return err == -ENOBUFS || err == -ENOMEM ? -ENOMEM : -EHOSTUNREACH;
}

/* May a route depend on more than the destination? */
static inline bool l4lb_net_has_rules(const struct net *net, u8 af)
{
#ifdef CONFIG_IP_MULTIPLE_TABLES
	if (af == AF_INET)
		return net->ipv4.fib_has_custom_rules;
#endif
#ifdef CONFIG_IPV6_MULTIPLE_TABLES
	if (af == AF_INET6)
		return net->ipv6.fib6_has_custom_rules;
#endif
	return false;
}

int l4lb_route_net_init(struct l4lb_net *ln);
void l4lb_route_net_exit(struct l4lb_net *ln);
int l4lb_route_init(void);
void l4lb_route_exit(void);

#endif /* _L4LB_ROUTE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Output routes of a real server, cached. */
#ifndef _L4LB_ROUTE_H
#define _L4LB_ROUTE_H

#include <net/dst.h>

#include "service/server.h"

/**
 * struct l4lb_route - a route that was valid when it was looked up
 * @dst: the route; a reference is held
 * @to: the real server
 * @af: family of @to
 * @cookie: for dst_check()
 * @saddr: source address for this route; the outer source of a tunnel
 * @local: the real server is this host
 * @slot: in l4lb_server.route, where it is cached
 * @device: in whose list it is; of l4lb_net.route_lock, as all below
 * @node: in that list
 * @rcu: to free it
 *
 * Packets need the first line only: all before @slot.
 */
struct l4lb_route {
	struct dst_entry	*dst;
	union nf_inet_addr	to;
	u8			af;
	bool			local;
	u32			cookie;
	union nf_inet_addr	saddr;
	struct l4lb_route __rcu	**slot;
	struct l4lb_route_device *device;
	struct list_head	node;
	struct rcu_head		rcu;
} ____cacheline_aligned;

static_assert(offsetof(struct l4lb_route, slot) <= L1_CACHE_BYTES);

/* The route to @server for forwarding @method, cached if that is still valid.
 * RCU; the result is valid in the same RCU section.  ERR_PTR(): -EHOSTUNREACH,
 * no route; -ENOMEM, there may be one.
 */
const struct l4lb_route *l4lb_route_get(struct l4lb_server *server, u8 method);

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

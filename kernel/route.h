/* SPDX-License-Identifier: GPL-2.0 */
/* Output route of a real server, cached. */
#ifndef _L4LB_ROUTE_H
#define _L4LB_ROUTE_H

#include <net/dst.h>

#include "dest.h"

/**
 * struct l4lb_route - a route that was valid when it was looked up
 * @dst: the route; a reference is held
 * @cookie: for dst_check()
 * @saddr: source address chosen for it: outer source of a tunnel
 * @local: the real server is this host
 * @rcu: to free it
 */
struct l4lb_route {
	struct dst_entry	*dst;
	u32			cookie;
	union nf_inet_addr	saddr;
	bool			local;
	struct rcu_head		rcu;
};

/* The route to @real, from the cache if it still holds.  RCU; the result is
 * valid in the same RCU section.  NULL: no route.
 */
const struct l4lb_route *l4lb_route_get(struct l4lb_real *real);

/* Forget the cached route: real server freed, edited, device going. */
void l4lb_route_flush(struct l4lb_real *real);

/* Is @addr on this host, as the namespace routes?  May sleep or softirq. */
bool l4lb_addr_is_local(struct net *net, u16 af, const union nf_inet_addr *a);

int l4lb_route_init(void);
void l4lb_route_exit(void);

#endif /* _L4LB_ROUTE_H */

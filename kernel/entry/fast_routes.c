// SPDX-License-Identifier: GPL-2.0
/*
 * Address checks for scheduling at ingress, mostly without a route lookup,
 * which would be the most expensive step of a new connection.
 *
 *	source, IPv4	Can it be another host?  A bitmap has a bit for each of
 *			the host's own addresses, by their lower half.  Bit
 *			clear (nearly always): yes.  Bit set: look it up.
 *	VIP		Is it an address of this host?  A service caches the
 *			answer until an address or a route changes.
 *
 * A notifier of the routing tables fills the bitmap.  Removed addresses keep
 * their bit: that costs lookups, but the answer stays right.
 */
#include "entry/fast_routes.h"

#include <linux/atomic.h>
#include <linux/in.h>
#include <linux/jiffies.h>
#include <net/fib_notifier.h>
#include <net/ip_fib.h>
#include <net/route.h>

static void note_net(struct l4lb_fast_routes *routes, u32 addr, u32 mask)
{
	unsigned int i, n = routes->n_nets;

	if ((l4lb_fast_is_special(addr) && mask >= 0xff000000) || n > L4LB_FAST_LOCAL_NETS)
		return;
	for (i = 0; i < n; i++)
		if (routes->nets[i].addr == addr &&
		    routes->nets[i].mask == mask)
			return;
	if (n < L4LB_FAST_LOCAL_NETS) {
		routes->nets[n].addr = addr;
		routes->nets[n].mask = mask;
	}
	/* Pairs with l4lb_fast_in_nets(). */
	smp_store_release(&routes->n_nets, n + 1);
}

static void note(struct l4lb_fast_routes *routes,
		 const struct fib_entry_notifier_info *route)
{
	switch (route->type) {
	case RTN_LOCAL:
	case RTN_BROADCAST:
	case RTN_ANYCAST:
	case RTN_MULTICAST:
		break;
	default:
		return;
	}
	if (route->dst_len == 32)
		set_bit(l4lb_fast_local_bit(route->dst), routes->local);
	else
		note_net(routes, route->dst, route->dst_len ?
			 ~0U << (32 - route->dst_len) : 0);
}

/* Called in atomic context or under RTNL. */
static int route_event(struct notifier_block *nb, unsigned long event,
		       void *ptr)
{
	struct l4lb_fast_routes *routes =
		container_of(nb, struct l4lb_fast_routes, nb);
	const struct fib_notifier_info *info = ptr;

	if (info->family == AF_INET6) {
		WRITE_ONCE(routes->changed, jiffies);
		/* Pairs with l4lb_fast_generation(). */
		atomic_inc_return_release(&routes->generation);
	} else if (info->family == AF_INET &&
		   (event == FIB_EVENT_ENTRY_REPLACE ||
		    event == FIB_EVENT_ENTRY_APPEND ||
		    event == FIB_EVENT_ENTRY_ADD)) {
		note(routes, container_of(info, struct fib_entry_notifier_info,
					  info));
	}
	return NOTIFY_DONE;
}

/**
 * l4lb_fast_routes_start() - follow addresses and routes, to save lookups
 * @fast: fast path of the namespace
 *
 * Context: may sleep; neither RTNL nor the configuration mutex; one at a time.
 * It may fail: then each packet needs a route lookup.
 */
void l4lb_fast_routes_start(struct l4lb_fast *fast)
{
	struct l4lb_fast_routes *routes;

	if (fast->routes)
		return;
	routes = kvzalloc(sizeof(*routes), GFP_KERNEL);
	if (!routes)
		return;
	routes->nb.notifier_call = route_event;
	routes->changed = jiffies;
	/* It reports existing routes before it returns. */
	if (register_fib_notifier(fast->ln->net, &routes->nb, NULL, NULL))
		kvfree(routes);
	else
		/* Readers must see the filled bitmap. */
		smp_store_release(&fast->routes, routes);
}

/* Same context as l4lb_fast_routes_start(). */
void l4lb_fast_routes_stop(struct l4lb_fast *fast)
{
	if (fast->routes)
		unregister_fib_notifier(fast->ln->net, &fast->routes->nb);
}

/* No packet is left that could use it. */
void l4lb_fast_routes_free(struct l4lb_fast *fast)
{
	kvfree(fast->routes);
}

/* Looks up what l4lb_fast_source_ok() cannot tell. */
bool l4lb_fast_source_look_up(const struct l4lb_fast *fast, __be32 addr)
{
	return !ipv4_is_loopback(addr) &&
	       inet_addr_type(fast->ln->net, addr) == RTN_UNICAST;
}

/**
 * l4lb_fast_generation() - a number that changes with addresses, routes and
 * rules of IPv6
 * @fast: fast path of the namespace
 * @generation: gets the number; a lookup after this is at least as new
 *
 * Some changes are notified a moment before they are made, so the number is not
 * valid during the jiffy of a change and the next one.
 * Context: softirq, RCU.  Return: is the number valid?
 */
bool l4lb_fast_generation(const struct l4lb_fast *fast, u32 *generation)
{
	const struct l4lb_fast_routes *routes = READ_ONCE(fast->routes);

	if (unlikely(!routes))
		return false;
	/* Pairs with route_event(). */
	*generation = atomic_read_acquire(&routes->generation);
	return time_after(jiffies, READ_ONCE(routes->changed) + 1);
}

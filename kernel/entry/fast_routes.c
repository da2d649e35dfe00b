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

#define LOCAL_BITS	16
#define LOCAL_NETS	8

/**
 * struct l4lb_fast_routes - addresses of a namespace, from its routes
 * @nb: notifier of route changes; IPv4 calls it one at a time
 * @local: single addresses that no packet from outside has as its source, by
 *	their lower bits
 * @n_nets: number of networks of such addresses; > %LOCAL_NETS: too many
 * @nets: the first %LOCAL_NETS of these networks
 * @changed: jiffies of the last change for IPv6
 * @generation: number of changes for IPv6
 */
struct l4lb_fast_routes {
	struct notifier_block	nb;
	DECLARE_BITMAP(local, 1 << LOCAL_BITS);
	unsigned int		n_nets;
	struct {
		u32		addr, mask;
	} nets[LOCAL_NETS];
	unsigned long		changed;
	atomic_t		generation;
};

static unsigned int local_bit(u32 addr)
{
	return addr & GENMASK(LOCAL_BITS - 1, 0);
}

/* Not unicast addresses: first byte 0, 127 or 224 to 255. */
static bool is_special(u32 addr)
{
	u8 first = addr >> 24;

	return (u8)(first - 1) >= 223 || first == 127;
}

static bool in_nets(const struct l4lb_fast_routes *routes, u32 addr)
{
	/* Pairs with note_net(). */
	unsigned int i, n = smp_load_acquire(&routes->n_nets);

	for (i = 0; i < n && i < LOCAL_NETS; i++)
		if ((addr & routes->nets[i].mask) == routes->nets[i].addr)
			return true;
	return n > LOCAL_NETS;
}

static void note_net(struct l4lb_fast_routes *routes, u32 addr, u32 mask)
{
	unsigned int i, n = routes->n_nets;

	if ((is_special(addr) && mask >= 0xff000000) || n > LOCAL_NETS)
		return;
	for (i = 0; i < n; i++)
		if (routes->nets[i].addr == addr &&
		    routes->nets[i].mask == mask)
			return;
	if (n < LOCAL_NETS) {
		routes->nets[n].addr = addr;
		routes->nets[n].mask = mask;
	}
	/* Pairs with in_nets(). */
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
		set_bit(local_bit(route->dst), routes->local);
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

/**
 * l4lb_fast_source_ok() - may a packet from outside have this source?
 * @fast: fast path of the namespace
 * @addr: the source
 *
 * Not if it is an address of this host, multicast, broadcast or zero.
 * Context: softirq, RCU.
 */
bool l4lb_fast_source_ok(const struct l4lb_fast *fast, __be32 addr)
{
	const struct l4lb_fast_routes *routes = READ_ONCE(fast->routes);
	u32 host = ntohl(addr);

	if (likely(routes && !test_bit(local_bit(host), routes->local) &&
		   !is_special(host) && !in_nets(routes, host)))
		return true;
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

// SPDX-License-Identifier: GPL-2.0
/*
 * The output routes of a real server, looked up once and then only checked:
 * dst_check() takes two comparisons, a lookup hundreds of nanoseconds.
 *
 * A cached route holds its device, so it is dropped when the device goes down.
 * Therefore the routes of a namespace are listed by device.  A spinlock of the
 * namespace protects the lists and serialises the replacing of routes: a device
 * that goes down must not wait for a configuration command.
 */
#include "service/route.h"

#include <linux/netdevice.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ip6_route.h>
#include <net/route.h>

#define FLUSH_BATCH	64	/* routes dropped while the lock is held */
#define NEIGH_KEPT	(10 * HZ)	/* at most */

/**
 * struct l4lb_route_device - a device that cached routes lead through
 * @by_dev: in l4lb_net.route_devices
 * @dev: the device; its notifier removes this before the device is freed
 * @node: in l4lb_net.route_list
 * @routes: the routes, never empty
 * @rcu: to free it
 */
struct l4lb_route_device {
	struct rhash_head	by_dev;
	const struct net_device	*dev;
	struct list_head	node;
	struct list_head	routes;
	struct rcu_head		rcu;
};

static const struct rhashtable_params device_params = {
	.key_len	= sizeof_field(struct l4lb_route_device, dev),
	.key_offset	= offsetof(struct l4lb_route_device, dev),
	.head_offset	= offsetof(struct l4lb_route_device, by_dev),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

/* ---- lookup ---- */

static struct dst_entry *lookup_ipv4(const struct l4lb_server *server,
				     struct l4lb_route *route, bool known_nh)
{
	struct flowi4 fl4 = {
		.daddr		= server->sched.addr.ip,
		.flowi4_flags	= known_nh ? FLOWI_FLAG_KNOWN_NH : 0,
	};
	struct rtable *rt;

	rt = ip_route_output_key(server->ln->net, &fl4);
	if (IS_ERR(rt))
		return ERR_CAST(rt);
	route->saddr.ip = fl4.saddr;
	route->local = rt->rt_flags & RTCF_LOCAL;
	return &rt->dst;
}

static struct dst_entry *lookup_ipv6(const struct l4lb_server *server,
				     struct l4lb_route *route, bool known_nh)
{
	struct net *net = server->ln->net;
	struct flowi6 fl6 = {
		.daddr		= server->sched.addr.in6,
		.flowi6_flags	= known_nh ? FLOWI_FLAG_KNOWN_NH : 0,
	};
	struct dst_entry *dst;

	dst = ip6_route_output(net, NULL, &fl6);
	if (dst->error)
		goto release;
	route->local = dst_rt6_info(dst)->rt6i_flags & RTF_LOCAL;
	if (ipv6_dev_get_saddr(net, ip6_dst_idev(dst)->dev, &fl6.daddr, 0,
			       &route->saddr.in6) < 0)
		goto release;
	route->cookie = rt6_get_cookie(dst_rt6_info(dst));
	return dst;

release:
	dst_release(dst);
	return ERR_PTR(-EHOSTUNREACH);
}

/* ---- cache: the namespace's lock ---- */

static void route_free_rcu(struct rcu_head *head)
{
	struct l4lb_route *route = container_of(head, struct l4lb_route, rcu);
	struct neighbour *neigh = rcu_dereference_raw(route->neigh);

	if (neigh)
		neigh_release(neigh);
	dst_release(route->dst);
	kfree(route);
}

static struct l4lb_route_device *device_find(struct l4lb_net *ln,
					     const struct net_device *dev)
{
	lockdep_assert_held(&ln->route_lock);
	return rhashtable_lookup_fast(&ln->route_devices, &dev, device_params);
}

static struct l4lb_route_device *device_new(struct l4lb_net *ln,
					    const struct net_device *dev)
{
	struct l4lb_route_device *device;

	device = kzalloc(sizeof(*device), GFP_ATOMIC | __GFP_NOWARN);
	if (!device)
		return NULL;
	device->dev = dev;
	INIT_LIST_HEAD(&device->routes);
	if (rhashtable_insert_fast(&ln->route_devices, &device->by_dev,
				   device_params)) {
		kfree(device);
		return NULL;
	}
	list_add(&device->node, &ln->route_list);
	return device;
}

/* Takes @route out of its slot and its device's list. */
static void route_drop(struct l4lb_net *ln, struct l4lb_route *route)
{
	struct l4lb_route_device *device = route->device;

	lockdep_assert_held(&ln->route_lock);
	if (rcu_access_pointer(*route->slot) == route)
		RCU_INIT_POINTER(*route->slot, NULL);
	list_del(&route->node);
	if (rcu_access_pointer(route->neigh))
		list_del(&route->kept);
	if (list_empty(&device->routes)) {
		rhashtable_remove_fast(&ln->route_devices, &device->by_dev,
				       device_params);
		list_del(&device->node);
		kfree_rcu(device, rcu);
	}
	call_rcu(&route->rcu, route_free_rcu);
}

/* Return: false if nobody would drop @route in time. */
static bool route_publish(struct l4lb_net *ln, struct l4lb_route *route,
			  struct l4lb_route __rcu **slot)
{
	const struct net_device *dev = route->dst->dev;
	struct l4lb_route *old;

	lockdep_assert_held(&ln->route_lock);
	/* The notifier of a device that went down after the lookup has run, or
	 * waits for the lock.
	 */
	if (!netif_running(dev) || READ_ONCE(ln->exiting))
		return false;
	route->device = device_find(ln, dev) ?: device_new(ln, dev);
	if (!route->device)
		return false;
	route->slot = slot;
	list_add(&route->node, &route->device->routes);
	old = rcu_replace_pointer(*slot, route,
				  lockdep_is_held(&ln->route_lock));
	if (old)
		route_drop(ln, old);
	return true;
}

static bool is_plain(const struct dst_entry *dst)
{
	return !dst->lwtstate && !dst_xfrm(dst) && l4lb_dev_is_ethernet(dst->dev);
}

/* For one packet only, if it cannot be cached. */
struct l4lb_route *l4lb_route_renew(struct l4lb_server *server, bool known_nh)
{
	struct l4lb_route *route = kzalloc(sizeof(*route), GFP_ATOMIC);
	struct l4lb_net *ln = server->ln;
	bool cached;
	int err;

	if (!route)
		return ERR_PTR(-ENOMEM);
	route->to = server->sched.addr;
	route->af = server->sched.af;
	route->dst = server->sched.af == AF_INET ?
		     lookup_ipv4(server, route, known_nh) :
		     lookup_ipv6(server, route, known_nh);
	if (IS_ERR(route->dst)) {
		err = l4lb_route_error(PTR_ERR(route->dst));
		kfree(route);
		return ERR_PTR(err);
	}
	route->plain = is_plain(route->dst);
	spin_lock_bh(&ln->route_lock);
	cached = route_publish(ln, route, &server->route[known_nh]);
	spin_unlock_bh(&ln->route_lock);
	if (!cached)	/* for this packet only */
		call_rcu(&route->rcu, route_free_rcu);
	return route;
}

/* ---- neighbours ---- */

/* Before the route gets another neighbour, whose address has changed as often. */
static void forget_hop(struct l4lb_route *route)
{
	WRITE_ONCE(route->hop.word, 0);
	smp_wmb();	/* pairs with l4lb_route_hop() */
}

static struct neighbour *neigh_locked(const struct l4lb_route *route,
				      const struct l4lb_net *ln)
{
	return rcu_dereference_protected(route->neigh,
					 lockdep_is_held(&ln->route_lock));
}

/* Return: the neighbour that is to be released, or NULL. */
static struct neighbour *keep(struct l4lb_net *ln, struct l4lb_route *route,
			      struct neighbour *neigh)
{
	struct neighbour *old;

	lockdep_assert_held(&ln->route_lock);
	/* Dropped meanwhile, or for one packet only. */
	if (!route->slot || rcu_access_pointer(*route->slot) != route ||
	    !refcount_inc_not_zero(&neigh->refcnt))
		return NULL;
	old = neigh_locked(route, ln);
	forget_hop(route);
	rcu_assign_pointer(route->neigh, neigh);
	if (!old)
		list_add(&route->kept, &ln->route_neighs);
	return old;
}

struct neighbour *l4lb_route_find_neigh(struct l4lb_net *ln,
					struct l4lb_route *route)
{
	struct neighbour *neigh = l4lb_neigh_of(route->dst, route->af,
						&route->to);
	struct neighbour *old;

	if (!neigh)
		return NULL;
	spin_lock(&ln->route_lock);
	old = keep(ln, route, neigh);
	spin_unlock(&ln->route_lock);
	if (old)
		neigh_release(old);
	queue_delayed_work(system_power_efficient_wq, &ln->route_work,
			   NEIGH_KEPT);
	return neigh;
}

union l4lb_hop l4lb_route_find_hop(struct l4lb_net *ln, struct l4lb_route *route,
				   const struct neighbour *neigh)
{
	const union l4lb_hop hop = l4lb_neigh_hop(neigh);

	spin_lock(&ln->route_lock);
	/* It may have got another one, or none. */
	if (rcu_access_pointer(route->neigh) == neigh)
		WRITE_ONCE(route->hop.word, hop.word);
	spin_unlock(&ln->route_lock);
	return hop;
}

/* Releases some of those in @list; return: their number. */
static unsigned int forget_some(struct l4lb_net *ln, struct list_head *list)
{
	struct neighbour *gone[FLUSH_BATCH];
	struct l4lb_route *route;
	unsigned int i, n;

	spin_lock_bh(&ln->route_lock);
	for (n = 0; n < FLUSH_BATCH && !list_empty(list); n++) {
		route = list_first_entry(list, struct l4lb_route, kept);
		gone[n] = neigh_locked(route, ln);
		forget_hop(route);
		RCU_INIT_POINTER(route->neigh, NULL);
		list_del(&route->kept);
	}
	spin_unlock_bh(&ln->route_lock);
	for (i = 0; i < n; i++)
		neigh_release(gone[i]);
	return n;
}

/* A neighbour with a reference is not collected as garbage, and the table of all
 * namespaces has a limit: routes that are used look theirs up again.
 */
static void forget_work(struct work_struct *work)
{
	struct l4lb_net *ln = container_of(to_delayed_work(work),
					   struct l4lb_net, route_work);
	LIST_HEAD(list);

	/* Packets may keep some again meanwhile: those are for the next time. */
	spin_lock_bh(&ln->route_lock);
	list_splice_init(&ln->route_neighs, &list);
	spin_unlock_bh(&ln->route_lock);
	while (forget_some(ln, &list) == FLUSH_BATCH)
		cond_resched();
}

void l4lb_route_flush(struct l4lb_server *server)
{
	struct l4lb_net *ln = server->ln;
	struct l4lb_route *route;
	int i;

	if (!rcu_access_pointer(server->route[0]) &&
	    !rcu_access_pointer(server->route[1]))
		return;
	spin_lock_bh(&ln->route_lock);
	for (i = 0; i < ARRAY_SIZE(server->route); i++) {
		route = rcu_dereference_protected(server->route[i],
						  lockdep_is_held(&ln->route_lock));
		if (route)
			route_drop(ln, route);
	}
	spin_unlock_bh(&ln->route_lock);
}

/* ---- devices ---- */

/* Drops some routes through @dev, or with NULL any.  Return: the number. */
static unsigned int flush_some(struct l4lb_net *ln,
			       const struct net_device *dev)
{
	struct l4lb_route_device *device;
	unsigned int n;

	spin_lock_bh(&ln->route_lock);
	for (n = 0; n < FLUSH_BATCH; n++) {
		device = dev ? device_find(ln, dev) :
			 list_first_entry_or_null(&ln->route_list,
						  struct l4lb_route_device,
						  node);
		if (!device)
			break;
		route_drop(ln, list_first_entry(&device->routes,
						struct l4lb_route, node));
	}
	spin_unlock_bh(&ln->route_lock);
	return n;
}

/* No route is added meanwhile: @dev is down, or the namespace is going. */
static void flush_device(struct l4lb_net *ln, const struct net_device *dev)
{
	while (flush_some(ln, dev) == FLUSH_BATCH)
		cond_resched();
}

void l4lb_route_flush_all(struct l4lb_net *ln)
{
	WARN_ON_ONCE(!READ_ONCE(ln->exiting));
	flush_device(ln, NULL);
}

static int device_event(struct notifier_block *nb, unsigned long event,
			void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	if (event == NETDEV_DOWN || event == NETDEV_UNREGISTER)
		flush_device(l4lb_net(dev_net(dev)), dev);
	return NOTIFY_DONE;
}

static struct notifier_block device_notifier = {
	.notifier_call = device_event,
};

int l4lb_route_net_init(struct l4lb_net *ln)
{
	spin_lock_init(&ln->route_lock);
	INIT_LIST_HEAD(&ln->route_list);
	INIT_LIST_HEAD(&ln->route_neighs);
	INIT_DELAYED_WORK(&ln->route_work, forget_work);
	return rhashtable_init(&ln->route_devices, &device_params);
}

/* No real server and no packet is left. */
void l4lb_route_net_exit(struct l4lb_net *ln)
{
	cancel_delayed_work_sync(&ln->route_work);
	WARN_ON(!list_empty(&ln->route_list));
	rhashtable_destroy(&ln->route_devices);
}

int __init l4lb_route_init(void)
{
	return register_netdevice_notifier(&device_notifier);
}

void l4lb_route_exit(void)
{
	unregister_netdevice_notifier(&device_notifier);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * The output route of a real server, looked up once and then only checked:
 * dst_check() takes two comparisons, a lookup hundreds of nanoseconds.
 *
 * A cached route holds its device, so it is dropped when the device goes down.
 */
#include "service/route.h"

#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ip6_route.h>
#include <net/route.h>

static struct dst_entry *lookup_ipv4(const struct l4lb_server *server,
				     struct l4lb_route *route)
{
	struct flowi4 fl4 = {
		.daddr		= server->sched.addr.ip,
		.flowi4_flags	= route->known_nh ? FLOWI_FLAG_KNOWN_NH : 0,
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
				     struct l4lb_route *route)
{
	struct net *net = server->ln->net;
	struct flowi6 fl6 = {
		.daddr		= server->sched.addr.in6,
		.flowi6_flags	= route->known_nh ? FLOWI_FLAG_KNOWN_NH : 0,
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

static void route_free_rcu(struct rcu_head *head)
{
	struct l4lb_route *route = container_of(head, struct l4lb_route, rcu);

	dst_release(route->dst);
	kfree(route);
}

static void route_replace(struct l4lb_server *server, struct l4lb_route *route)
{
	struct l4lb_route *old;

	spin_lock_bh(&server->route_lock);
	old = rcu_replace_pointer(server->route, route,
				  lockdep_is_held(&server->route_lock));
	spin_unlock_bh(&server->route_lock);
	if (old)
		call_rcu(&old->rcu, route_free_rcu);
}

static const struct l4lb_route *route_renew(struct l4lb_server *server,
					    bool known_nh)
{
	struct l4lb_route *route = kzalloc(sizeof(*route), GFP_ATOMIC);
	int err;

	if (!route)
		return ERR_PTR(-ENOMEM);
	route->known_nh = known_nh;
	route->dst = server->sched.af == AF_INET ? lookup_ipv4(server, route) :
						lookup_ipv6(server, route);
	if (IS_ERR(route->dst)) {
		err = l4lb_route_error(PTR_ERR(route->dst));
		kfree(route);
		return ERR_PTR(err);
	}
	route_replace(server, route);
	/* If the device went down after the lookup and its notifier ran before
	 * the publishing, nothing else would drop this route.
	 */
	if (!netif_running(route->dst->dev))
		l4lb_route_flush(server);
	return route;
}

const struct l4lb_route *l4lb_route_get(struct l4lb_server *server, u8 method)
{
	const struct l4lb_route *route = rcu_dereference(server->route);
	/* Direct routing leaves the VIP in the packet, which must not be
	 * taken for the next hop.  @method is the connection's: the real
	 * server's may have changed since.
	 */
	bool known_nh = method == IP_VS_CONN_F_DROUTE;

	if (likely(route && route->known_nh == known_nh &&
		   dst_check(route->dst, route->cookie)))
		return route;
	return route_renew(server, known_nh);
}

void l4lb_route_flush(struct l4lb_server *server)
{
	if (rcu_access_pointer(server->route))
		route_replace(server, NULL);
}

void l4lb_route_flush_all(struct l4lb_net *ln)
{
	struct l4lb_service *svc;
	struct l4lb_server *server;

	lockdep_assert_held(&ln->lock);
	list_for_each_entry(svc, &ln->services, list)
		list_for_each_entry(server, &svc->servers, node)
			l4lb_route_flush(server);
	list_for_each_entry(server, &ln->trash, node)
		l4lb_route_flush(server);
}

static int device_event(struct notifier_block *nb, unsigned long event,
			void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct l4lb_net *ln = l4lb_net(dev_net(dev));

	if (event != NETDEV_DOWN && event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	mutex_lock(&ln->lock);
	l4lb_route_flush_all(ln);
	mutex_unlock(&ln->lock);
	return NOTIFY_DONE;
}

static struct notifier_block device_notifier = {
	.notifier_call = device_event,
};

int __init l4lb_route_init(void)
{
	return register_netdevice_notifier(&device_notifier);
}

void l4lb_route_exit(void)
{
	unregister_netdevice_notifier(&device_notifier);
}

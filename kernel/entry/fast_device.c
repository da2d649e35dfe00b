// SPDX-License-Identifier: GPL-2.0
/*
 * In a namespace with services the fast path is attached to every device that
 * is up, hands its packets to the IP stack and is not loopback.  Lower devices
 * (a bridge's port, a bond's slave, a VRF's member, the parent of a macvlan)
 * are left out: the upper device gets their packets.
 *
 * Attaching and detaching need RTNL, which serialises them with devices that
 * appear, disappear or change their namespace.  The configuration mutex nests
 * inside RTNL, so configuration changes queue work.
 */
#include "entry/fast_device.h"

#include <linux/netfilter_netdev.h>
#include <linux/rtnetlink.h>
#include <net/l3mdev.h>

#include "entry/fast_back.h"
#include "entry/fast_packet.h"
#include "entry/fast_routes.h"

/* ---- numbers ---- */

/* Allocate a number; 0: there is none left. */
static u8 id_get(struct l4lb_fast_ids *ids)
{
	unsigned int i, id = ids->last;

	for (i = 1; i < L4LB_FAST_IDS; i++) {
		id = id % (L4LB_FAST_IDS - 1) + 1;	/* 1 to 255 */
		/* freed[] is 0 if the number was never used. */
		if (test_bit(id, ids->used) ||
		    (ids->freed[id] &&
		     time_before(jiffies, ids->freed[id] + L4LB_FAST_REST)))
			continue;
		__set_bit(id, ids->used);
		ids->last = id;
		return id;
	}
	return 0;
}

static void id_put(struct l4lb_fast_ids *ids, u8 id)
{
	__clear_bit(id, ids->used);
	ids->freed[id] = jiffies | 1;
}

/* ---- devices ---- */

static bool wanted(const struct l4lb_net *ln)
{
	return !READ_ONCE(ln->exiting) &&
	       READ_ONCE(ln->n_services[0]) + READ_ONCE(ln->n_services[1]) &&
	       (READ_ONCE(ln->sysctl.fast_path) || READ_ONCE(ln->n_fast_path));
}

static bool qualifies(const struct net_device *dev)
{
	return netif_running(dev) && !(dev->flags & IFF_LOOPBACK) &&
	       !rcu_access_pointer(dev->rx_handler) &&
	       !netif_is_l3_slave(dev);
}

static void detach(struct l4lb_fast *fast, struct l4lb_fast_device *d)
{
	ASSERT_RTNL();
	nf_unregister_net_hook(fast->ln->net, &d->ops);
	xa_erase(&fast->devices, d->ops.dev->ifindex);
	id_put(&fast->device_ids, d->id);
	/* Packets may still be in the hook. */
	kfree_rcu(d, rcu);
}

static void attach(struct l4lb_fast *fast, struct net_device *dev)
{
	struct l4lb_fast_device *d;

	ASSERT_RTNL();
	d = kzalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		return;
	d->ops = (struct nf_hook_ops){
		.hook		= l4lb_fast_packet,
		.dev		= dev,
		.priv		= d,
		.pf		= NFPROTO_NETDEV,
		.hooknum	= NF_NETDEV_INGRESS,
		/* After the administrator's rules and flow tables. */
		.priority	= INT_MAX,
	};
	d->ln = fast->ln;
	d->serial = ++fast->serial;
	d->id = id_get(&fast->device_ids);
	if (!d->id) {
		/* Freed numbers can be reused after a term: try again then. */
		mod_delayed_work(l4lb_wq, &fast->work, L4LB_FAST_TERM);
		goto free;
	}
	if (xa_err(xa_store(&fast->devices, dev->ifindex, d, GFP_KERNEL)))
		goto put_id;
	if (nf_register_net_hook(fast->ln->net, &d->ops))
		goto erase;
	/* Packets merged by LRO cannot be forwarded. */
	dev_disable_lro(dev);
	return;

erase:
	xa_erase(&fast->devices, dev->ifindex);
put_id:
	id_put(&fast->device_ids, d->id);
free:
	/* Without the hook, its packets take the slow path. */
	kfree_rcu(d, rcu);
}

static void device_update(struct l4lb_fast *fast, struct net_device *dev,
			  bool may)
{
	struct l4lb_fast_device *d = xa_load(&fast->devices, dev->ifindex);

	may = may && wanted(fast->ln) && qualifies(dev);
	if (may && !d)
		attach(fast, dev);
	else if (!may && d)
		detach(fast, d);
}

static void update_devices(struct l4lb_fast *fast)
{
	struct net_device *dev;

	ASSERT_RTNL();
	for_each_netdev(fast->ln->net, dev)
		device_update(fast, dev, true);
}

static void work_fn(struct work_struct *work)
{
	struct l4lb_fast *fast = container_of(to_delayed_work(work),
					      struct l4lb_fast, work);

	if (wanted(fast->ln) && l4lb_fast_has_new(fast->ln))
		l4lb_fast_routes_start(fast);
	rtnl_lock();
	update_devices(fast);
	rtnl_unlock();
}

void l4lb_fast_changed(struct l4lb_net *ln)
{
	struct l4lb_fast *fast = READ_ONCE(ln->fast);

	if (fast)
		mod_delayed_work(l4lb_wq, &fast->work, 0);
}

static int device_event(struct notifier_block *nb, unsigned long event,
			void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct l4lb_fast *fast = READ_ONCE(l4lb_net(dev_net(dev))->fast);

	if (!fast)
		return NOTIFY_DONE;
	/* At these events detach, though the device may still be running. */
	device_update(fast, dev,
		      event != NETDEV_GOING_DOWN && event != NETDEV_DOWN &&
		      event != NETDEV_UNREGISTER);
	if (event == NETDEV_DOWN || event == NETDEV_UNREGISTER)
		l4lb_fast_back_flush(fast, dev);
	/* The rx_handler of a lower device is removed only after these events,
	 * by its master or with its last macvlan: check again then.
	 */
	if (event == NETDEV_CHANGEUPPER || event == NETDEV_UNREGISTER)
		l4lb_fast_changed(fast->ln);
	return NOTIFY_DONE;
}

static struct notifier_block device_notifier = {
	.notifier_call = device_event,
};

int l4lb_fast_create(struct l4lb_net *ln)
{
	struct l4lb_fast *fast;

	lockdep_assert_held(&ln->lock);
	if (ln->fast)
		return 0;
	fast = kzalloc(sizeof(*fast), GFP_KERNEL);
	if (!fast)
		return -ENOMEM;
	if (l4lb_fast_back_init(fast)) {
		kfree(fast);
		return -ENOMEM;
	}
	fast->ln = ln;
	xa_init(&fast->devices);
	INIT_DELAYED_WORK(&fast->work, work_fn);
	/* Packets and notifiers must see it initialised. */
	smp_store_release(&ln->fast, fast);
	return 0;
}

void l4lb_fast_stop(struct l4lb_net *ln)
{
	struct l4lb_fast *fast = ln->fast;

	if (!fast)
		return;
	cancel_delayed_work_sync(&fast->work);
	rtnl_lock();
	update_devices(fast);	/* ln->exiting: detach all */
	rtnl_unlock();
	l4lb_fast_routes_stop(fast);
	l4lb_fast_back_flush(fast, NULL);
}

void l4lb_fast_destroy(struct l4lb_net *ln)
{
	if (!ln->fast)
		return;
	cancel_delayed_work_sync(&ln->fast->work);
	/* Packets in flight during l4lb_fast_stop() may have added routes. */
	l4lb_fast_back_free(ln->fast);
	WARN_ON(!xa_empty(&ln->fast->devices));
	xa_destroy(&ln->fast->devices);
	l4lb_fast_routes_free(ln->fast);
	kfree(ln->fast);
	ln->fast = NULL;
}

int __init l4lb_fast_init(void)
{
	return register_netdevice_notifier(&device_notifier);
}

void l4lb_fast_exit(void)
{
	unregister_netdevice_notifier(&device_notifier);
}

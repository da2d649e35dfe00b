// SPDX-License-Identifier: GPL-2.0
/*
 * In a namespace with services the fast path is attached to every device that
 * is up, hands its packets to the IP stack and is not loopback.  Lower devices
 * (a bridge's port, a bond's slave, a VRF's member, the parent of a macvlan)
 * are left out: the upper device gets their packets.
 *
 * A device gets a number with the first request of a service's flow, and keeps
 * it while such requests come in.  So devices without them take none.
 *
 * Attaching and detaching need RTNL, which serialises them with devices that
 * appear, disappear or change their namespace.  Neither of RTNL and the
 * configuration mutex is taken inside the other: configuration changes queue
 * work.
 */
#include "entry/fast_device.h"

#include <linux/mm.h>
#include <linux/netfilter_netdev.h>
#include <linux/rtnetlink.h>
#include <net/l3mdev.h>

#include "entry/fast_back.h"
#include "entry/fast_packet.h"
#include "entry/fast_routes.h"
#include "entry/xdp.h"
#include "sync/daemon.h"

/* ---- numbers ---- */

/* May a connection still store the number? */
static bool is_free(const struct l4lb_fast_id *id)
{
	return !id->ever ||
	       time_after(jiffies, id->used + L4LB_FAST_REST + HZ);
}

/* Take a number that no device has, or whose device has not used it of late. */
static void id_take(struct l4lb_fast *fast, struct l4lb_fast_device *d)
{
	unsigned int i;

	lockdep_assert_held(&fast->lock);
	for (i = 1; i < L4LB_FAST_IDS && !is_free(&fast->ids[i]); i++)
		;
	if (i == L4LB_FAST_IDS) {
		WRITE_ONCE(fast->full, jiffies + HZ);
		return;
	}
	if (fast->ids[i].device)
		WRITE_ONCE(fast->ids[i].device->id, L4LB_FAST_NO_ID);
	fast->ids[i].device = d;
	WRITE_ONCE(d->id, i);
}

u8 l4lb_fast_device_use(struct l4lb_fast_device *d)
{
	struct l4lb_fast *fast = d->ln->fast;
	u16 id;

	if (READ_ONCE(d->id) == L4LB_FAST_NO_ID &&
	    time_before(jiffies, READ_ONCE(fast->full)))
		return 0;
	spin_lock(&fast->lock);
	if (d->id == L4LB_FAST_NO_ID && !d->gone)
		id_take(fast, d);
	id = d->id;
	if (id != L4LB_FAST_NO_ID) {
		fast->ids[id].ever = true;
		fast->ids[id].used = jiffies;
		/* Pairs with l4lb_fast_device_id(). */
		smp_store_release(&d->used, jiffies);
	}
	spin_unlock(&fast->lock);
	return id == L4LB_FAST_NO_ID ? 0 : id;
}

static void id_drop(struct l4lb_fast *fast, struct l4lb_fast_device *d)
{
	spin_lock_bh(&fast->lock);
	if (d->id != L4LB_FAST_NO_ID)
		fast->ids[d->id].device = NULL;
	WRITE_ONCE(d->id, L4LB_FAST_NO_ID);
	d->gone = true;
	spin_unlock_bh(&fast->lock);
}

/* ---- devices ---- */

static bool wanted(const struct l4lb_net *ln)
{
	return !READ_ONCE(ln->exiting) && !l4lb_sync_stands_by(ln) &&
	       READ_ONCE(ln->n_services[0]) + READ_ONCE(ln->n_services[1]) &&
	       (READ_ONCE(ln->sysctl.fast_path) || READ_ONCE(ln->n_fast_path));
}

static bool qualifies(const struct net_device *dev)
{
	return netif_running(dev) && !(dev->flags & IFF_LOOPBACK) &&
	       !rcu_access_pointer(dev->rx_handler) &&
	       !netif_is_l3_slave(dev);
}

static struct l4lb_fast_device __rcu **near(struct l4lb_fast *fast,
					    const struct l4lb_fast_device *d)
{
	return &fast->near[d->ops.dev->ifindex % L4LB_FAST_NEAR];
}

static void detach(struct l4lb_fast *fast, struct l4lb_fast_device *d)
{
	ASSERT_RTNL();
	nf_unregister_net_hook(fast->ln->net, &d->ops);
	if (rcu_access_pointer(*near(fast, d)) == d)
		RCU_INIT_POINTER(*near(fast, d), NULL);
	xa_erase(&fast->devices, d->ops.dev->ifindex);
	id_drop(fast, d);
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
	d->opaque = l4lb_xdp_is_opaque(dev);
	d->serial = ++fast->serial;
	d->id = L4LB_FAST_NO_ID;
	if (xa_err(xa_store(&fast->devices, dev->ifindex, d, GFP_KERNEL)))
		goto free;
	if (nf_register_net_hook(fast->ln->net, &d->ops))
		goto erase;
	rcu_assign_pointer(*near(fast, d), d);
	/* Packets merged by LRO cannot be forwarded. */
	dev_disable_lro(dev);
	return;

erase:
	xa_erase(&fast->devices, dev->ifindex);
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

	rtnl_lock();
	update_devices(fast);
	rtnl_unlock();
	if (wanted(fast->ln))
		l4lb_fast_routes_start(fast);
}

static void stop_fn(struct work_struct *work)
{
	l4lb_fast_routes_stop(container_of(work, struct l4lb_fast, stop));
}

void l4lb_fast_changed(struct l4lb_net *ln)
{
	struct l4lb_fast *fast = READ_ONCE(ln->fast);

	if (fast)
		mod_delayed_work(l4lb_wq, &fast->work, 0);
}

/* Flows must pass the hooks again at once; devices are detached a little later. */
void l4lb_fast_stand_by(struct l4lb_net *ln)
{
	l4lb_fast_renew(ln);
	l4lb_fast_changed(ln);
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
	fast = kvzalloc(sizeof(*fast), GFP_KERNEL);
	if (!fast)
		return -ENOMEM;
	if (l4lb_fast_back_init(fast)) {
		kvfree(fast);
		return -ENOMEM;
	}
	fast->ln = ln;
	fast->full = jiffies;
	xa_init(&fast->devices);
	INIT_DELAYED_WORK(&fast->work, work_fn);
	INIT_WORK(&fast->stop, stop_fn);
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
	/* It waits for packets: those of many namespaces wait together. */
	queue_work(l4lb_wq, &fast->stop);
	l4lb_fast_back_flush(fast, NULL);
}

void l4lb_fast_destroy(struct l4lb_net *ln)
{
	if (!ln->fast)
		return;
	cancel_delayed_work_sync(&ln->fast->work);
	flush_work(&ln->fast->stop);
	/* Packets in flight during l4lb_fast_stop() may have added routes. */
	l4lb_fast_back_free(ln->fast);
	WARN_ON(!xa_empty(&ln->fast->devices));
	xa_destroy(&ln->fast->devices);
	l4lb_fast_routes_free(ln->fast);
	kvfree(ln->fast);
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

// SPDX-License-Identifier: GPL-2.0
/*
 * Start and stop of the two synchronisation daemons of a namespace.
 *
 * Both happen under a mutex of their own, which is taken before RTNL (a socket
 * joins a group) and never together with the configuration mutex (a receiver
 * needs that to look at a record, and stopping waits for it).  The notifier of
 * devices holds RTNL, so it leaves the stop to a work item.
 *
 * Records have one family for client and real server.  So a daemon and a real
 * server of another family than its service exclude each other; @claims is
 * counted under the configuration mutex, like such servers.
 */
#include "sync/daemon.h"

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ipv6.h>

#include "conn/watch.h"
#include "sync/counter.h"
#include "sync/peer.h"
#include "sync/send.h"
#include "sync/thread.h"

#define DEFAULT_GROUP	0xe0000051	/* 224.0.0.81 */

enum {
	DEFAULT_PORT	= 8848,
	DEFAULT_TTL	= 1,
	DEFAULT_MTU	= 1500,
	BACKUP_MIN	= 1024,		/* bytes a backup takes at least */
};

/**
 * struct l4lb_sync - synchronisation of a namespace
 * @ln: the namespace
 * @space: its number among those that have had a daemon
 * @claims: daemons and peers, also those that are being started (configuration mutex)
 * @lock: protects the rest; see above for its order
 * @daemons: the running ones, by state
 * @n_threads: of each daemon; read from sysctl sync_ports when none ran
 * @device_work: stops daemons whose device is gone
 */
struct l4lb_sync {
	struct l4lb_net		*ln;
	unsigned int		space;
	unsigned int		claims;
	struct mutex		lock;
	struct l4lb_sync_daemon	*daemons[IP_VS_STATE_BACKUP + 1];
	unsigned int		n_threads;
	struct work_struct	device_work;
};

DEFINE_STATIC_KEY_FALSE(l4lb_sync_receives);

static void (*stand_by_changed)(struct l4lb_net *ln);
static atomic_t spaces = ATOMIC_INIT(0);

static bool is_state(u32 state)
{
	return state == IP_VS_STATE_MASTER || state == IP_VS_STATE_BACKUP;
}

/* ---- claims ---- */

static void device_work(struct work_struct *work);

static void free_parts(struct l4lb_net *ln)
{
	if (ln->sync_peers)
		l4lb_sync_peers_destroy(ln->sync_peers);
	ln->sync_peers = NULL;
	free_percpu(ln->sync_counts);
	ln->sync_counts = NULL;
}

static int create(struct l4lb_net *ln)
{
	struct l4lb_sync *sync;

	lockdep_assert_held(&ln->lock);
	if (ln->sync)
		return 0;
	sync = kzalloc(sizeof(*sync), GFP_KERNEL);
	if (!sync)
		return -ENOMEM;
	ln->sync_counts = __alloc_percpu(sizeof(u64) * L4LB_SYNC_COUNTERS,
					 __alignof__(u64));
	ln->sync_peers = l4lb_sync_peers_create(ln);
	if (!ln->sync_counts || !ln->sync_peers) {
		free_parts(ln);
		kfree(sync);
		return -ENOMEM;
	}
	sync->ln = ln;
	sync->space = atomic_inc_return(&spaces) - 1;
	mutex_init(&sync->lock);
	INIT_WORK(&sync->device_work, device_work);
	/* Readers and notifiers must see it, and the counters, initialised. */
	smp_store_release(&ln->sync, sync);
	return 0;
}

static int claim_locked(struct l4lb_net *ln, struct netlink_ext_ack *extack)
{
	int err;

	lockdep_assert_held(&ln->lock);
	if (ln->n_mixed) {
		NL_SET_ERR_MSG(extack, "a real server has another family: remove it first");
		return -EINVAL;
	}
	err = create(ln);
	if (err)
		return err;
	ln->sync->claims++;
	return 0;
}

int l4lb_sync_claim(struct l4lb_net *ln, struct netlink_ext_ack *extack)
{
	int err;

	mutex_lock(&ln->lock);
	err = claim_locked(ln, extack);
	mutex_unlock(&ln->lock);
	if (err)
		return err;
	if (try_module_get(THIS_MODULE))
		return 0;
	NL_SET_ERR_MSG(extack, "l4lb is being unloaded");
	mutex_lock(&ln->lock);
	ln->sync->claims--;
	mutex_unlock(&ln->lock);
	return -ENOPROTOOPT;
}

void l4lb_sync_unclaim(struct l4lb_net *ln)
{
	mutex_lock(&ln->lock);
	ln->sync->claims--;
	mutex_unlock(&ln->lock);
	module_put(THIS_MODULE);
}

int l4lb_sync_prepare(struct l4lb_net *ln)
{
	int err;

	mutex_lock(&ln->lock);
	err = ln->exiting ? -ENODEV : create(ln);
	mutex_unlock(&ln->lock);
	return err;
}

bool l4lb_sync_runs(const struct l4lb_net *ln)
{
	lockdep_assert_held(&ln->lock);
	return ln->sync && ln->sync->claims;
}

/* ---- configuration ---- */

static unsigned int headers_of(const struct l4lb_sync_config *config)
{
	return sizeof(struct udphdr) + (config->af == AF_INET6 ?
					sizeof(struct ipv6hdr) :
					sizeof(struct iphdr));
}

static u16 maxlen_of(const struct l4lb_sync_config *config,
		     const struct net_device *dev)
{
	bool sends = config->state == IP_VS_STATE_MASTER;
	unsigned int headers = headers_of(config), mtu = DEFAULT_MTU;

	if (config->maxlen)
		return clamp_t(unsigned int, config->maxlen,
			       sends ? 1 : BACKUP_MIN, IP_MAX_MTU - headers);
	if (!sends)
		mtu = clamp_t(unsigned int, READ_ONCE(dev->mtu), DEFAULT_MTU,
			      IP_MAX_MTU);
	return mtu - headers;
}

static void fill_defaults(struct l4lb_sync_config *config,
			  const struct net_device *dev)
{
	if (!config->af) {
		config->af = AF_INET;
		config->group.ip = htonl(DEFAULT_GROUP);
	}
	config->port = config->port ?: DEFAULT_PORT;
	config->ttl = config->ttl ?: DEFAULT_TTL;
	config->maxlen = maxlen_of(config, dev);
}

/* ---- start and stop ---- */

static void publish(struct l4lb_sync_daemon *daemon)
{
	struct l4lb_net *ln = daemon->ln;

	lockdep_assert_held(&ln->sync->lock);
	ln->sync->daemons[daemon->config.state] = daemon;
	if (daemon->queues) {
		rcu_assign_pointer(ln->sync_queues, daemon->queues);
		static_branch_inc(&l4lb_conn_watched);
	} else {
		WRITE_ONCE(ln->sync_receives, true);
		static_branch_inc(&l4lb_sync_receives);
		stand_by_changed(ln);
	}
}

static void unpublish(struct l4lb_sync_daemon *daemon)
{
	struct l4lb_net *ln = daemon->ln;

	lockdep_assert_held(&ln->sync->lock);
	ln->sync->daemons[daemon->config.state] = NULL;
	if (daemon->queues) {
		static_branch_dec(&l4lb_conn_watched);
		RCU_INIT_POINTER(ln->sync_queues, NULL);
	} else {
		static_branch_dec(&l4lb_sync_receives);
		WRITE_ONCE(ln->sync_receives, false);
		stand_by_changed(ln);
	}
}

static void destroy(struct l4lb_sync_daemon *daemon)
{
	l4lb_sync_threads_stop(daemon);
	if (daemon->queues) {
		l4lb_sync_peers_restart(daemon->ln->sync_peers, 0);
		l4lb_sync_queues_free(daemon->queues);
	}
	kfree(daemon);
}

static int run(struct l4lb_sync *sync, const struct l4lb_sync_config *config,
	       const struct net_device *dev)
{
	struct l4lb_sync_daemon *daemon;
	int err = -ENOMEM;

	daemon = kzalloc(struct_size(daemon, threads, sync->n_threads),
			 GFP_KERNEL);
	if (!daemon)
		return err;
	daemon->ln = sync->ln;
	daemon->config = *config;
	daemon->ifindex = dev->ifindex;
	daemon->n = sync->n_threads;
	fill_defaults(&daemon->config, dev);
	if (config->state == IP_VS_STATE_MASTER) {
		daemon->queues = l4lb_sync_queues_create(sync->ln, daemon->n,
							 daemon->config.maxlen,
							 config->sync_id);
		if (!daemon->queues)
			goto err_destroy;
		l4lb_sync_peers_restart(sync->ln->sync_peers, daemon->n);
	}
	err = l4lb_sync_threads_start(daemon, dev, sync->space);
	if (err)
		goto err_destroy;
	if (daemon->queues)
		l4lb_sync_send_begin(sync->ln);
	publish(daemon);
	return 0;

err_destroy:
	destroy(daemon);
	return err;
}

static int run_on(struct l4lb_sync *sync, const struct l4lb_sync_config *config,
		  const struct net_device *dev, struct netlink_ext_ack *extack)
{
	int err;

	lockdep_assert_held(&sync->lock);
	if (is_state(config->state) && sync->daemons[config->state]) {
		NL_SET_ERR_MSG(extack, "this daemon runs already: stop it first");
		return -EEXIST;
	}
	if (!is_state(config->state)) {
		NL_SET_ERR_MSG(extack, "the daemon's state must be 1 (master) or 2 (backup)");
		return -EINVAL;
	}
	if (!sync->daemons[IP_VS_STATE_MASTER] &&
	    !sync->daemons[IP_VS_STATE_BACKUP])
		sync->n_threads = min_t(unsigned int, L4LB_SYNC_THREADS_MAX,
					READ_ONCE(sync->ln->sysctl.sync_ports));
	err = run(sync, config, dev);
	if (err == -ENETUNREACH)
		NL_SET_ERR_MSG(extack, "bring the device up, and give it an address");
	else if (err == -EADDRINUSE)
		NL_SET_ERR_MSG(extack, "another program has the group's port: choose another port");
	else if (err)
		NL_SET_ERR_MSG(extack, "the daemon's sockets or threads could not be created");
	return err;
}

/**
 * l4lb_sync_start() - start a synchronisation daemon
 * @ln: its namespace
 * @config: what it does; the state may be wrong
 * @extack: gets a sentence on failure
 *
 * Return: 0, or what ip_vs answers, in its order: -EINVAL (a server of another
 * family than its service), -ENOPROTOOPT, -ENODEV, -EEXIST, -EINVAL (state),
 * -ENOMEM, an error of the sockets.  Nothing has changed then.
 */
int l4lb_sync_start(struct l4lb_net *ln, const struct l4lb_sync_config *config,
		    struct netlink_ext_ack *extack)
{
	struct net_device *dev;
	int err;

	err = l4lb_sync_claim(ln, extack);
	if (err)
		return err;
	mutex_lock(&ln->sync->lock);
	dev = dev_get_by_name(ln->net, config->ifname);
	if (dev) {
		err = run_on(ln->sync, config, dev, extack);
		dev_put(dev);
	} else {
		err = -ENODEV;
		NL_SET_ERR_MSG(extack, "there is no such network device here");
	}
	mutex_unlock(&ln->sync->lock);
	if (err)
		l4lb_sync_unclaim(ln);
	return err;
}

static bool stop(struct l4lb_sync *sync, u32 state)
{
	struct l4lb_sync_daemon *daemon = sync->daemons[state];

	lockdep_assert_held(&sync->lock);
	if (!daemon)
		return false;
	unpublish(daemon);
	destroy(daemon);
	return true;
}

/* -EINVAL: no such state.  -ESRCH: it does not run. */
int l4lb_sync_stop(struct l4lb_net *ln, u32 state)
{
	struct l4lb_sync *sync = smp_load_acquire(&ln->sync); /* create() */
	bool stopped = false;

	if (!is_state(state))
		return -EINVAL;
	if (sync) {
		mutex_lock(&sync->lock);
		stopped = stop(sync, state);
		mutex_unlock(&sync->lock);
	}
	if (!stopped)
		return -ESRCH;
	l4lb_sync_unclaim(ln);
	return 0;
}

bool l4lb_sync_get(struct l4lb_net *ln, u32 state,
		   struct l4lb_sync_config *config)
{
	struct l4lb_sync *sync = smp_load_acquire(&ln->sync); /* create() */
	const struct l4lb_sync_daemon *daemon;

	if (!sync)
		return false;
	mutex_lock(&sync->lock);
	daemon = sync->daemons[state];
	if (daemon)
		*config = daemon->config;
	mutex_unlock(&sync->lock);
	return daemon;
}

/* ---- devices and namespaces ---- */

static bool stop_orphan(struct l4lb_sync *sync, u32 state)
{
	const struct l4lb_sync_daemon *daemon = sync->daemons[state];
	bool orphan;

	if (!daemon)
		return false;
	rcu_read_lock();
	orphan = !dev_get_by_index_rcu(sync->ln->net, daemon->ifindex);
	rcu_read_unlock();
	return orphan && stop(sync, state);
}

static void device_work(struct work_struct *work)
{
	struct l4lb_sync *sync = container_of(work, struct l4lb_sync,
					      device_work);
	bool stopped;
	u32 state;

	for (state = IP_VS_STATE_MASTER; state <= IP_VS_STATE_BACKUP; state++) {
		mutex_lock(&sync->lock);
		stopped = stop_orphan(sync, state);
		mutex_unlock(&sync->lock);
		if (stopped)
			l4lb_sync_unclaim(sync->ln);
	}
}

/* The device has left the list of devices already, so a daemon that is being
 * started either does not find it, or is stopped once it runs.
 */
static int device_event(struct notifier_block *nb, unsigned long event,
			void *ptr)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	/* Pairs with create(). */
	struct l4lb_sync *sync = smp_load_acquire(&l4lb_net(dev_net(dev))->sync);

	if (sync && event == NETDEV_UNREGISTER)
		queue_work(l4lb_wq, &sync->device_work);
	return NOTIFY_DONE;
}

static struct notifier_block device_notifier = {
	.notifier_call = device_event,
};

/* Devices still exist; packets and commands do not come any more. */
void l4lb_sync_net_stop(struct l4lb_net *ln)
{
	unsigned int n;

	l4lb_sync_stop(ln, IP_VS_STATE_MASTER);
	l4lb_sync_stop(ln, IP_VS_STATE_BACKUP);
	if (!smp_load_acquire(&ln->sync))	/* create() */
		return;
	for (n = l4lb_sync_peers_stop(ln->sync_peers); n; n--)
		l4lb_sync_unclaim(ln);
}

/* Daemons are stopped, and the notifier is not called any more. */
void l4lb_sync_net_exit(struct l4lb_net *ln)
{
	if (!ln->sync)
		return;
	cancel_work_sync(&ln->sync->device_work);
	free_parts(ln);
	kfree(ln->sync);
}

int __init l4lb_sync_init(void (*changed)(struct l4lb_net *ln))
{
	stand_by_changed = changed;
	return register_netdevice_notifier(&device_notifier);
}

void l4lb_sync_exit(void)
{
	unregister_netdevice_notifier(&device_notifier);
}

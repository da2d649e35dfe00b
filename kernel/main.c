// SPDX-License-Identifier: GPL-2.0
/*
 * Module and namespace set-up, in order; tear-down is its mirror image.
 *
 * The netlink family is registered before the files in /proc: if ip_vs is
 * loaded, its name is taken and the load fails cleanly, while the kernel warns
 * with a stack trace when /proc/net/ip_vs is created twice.
 */
#include <linux/module.h>
#include <net/net_namespace.h>

#include "api/netlink_ipvs.h"
#include "api/netlink_l4lb.h"
#include "api/netlink_log.h"
#include "api/procfs.h"
#include "api/sysctl.h"
#include "api/sysctl_sched.h"
#include "config/edit.h"
#include "conn/defence.h"
#include "conn/state.h"
#include "conn/table.h"
#include "entry/fast_device.h"
#include "entry/hook.h"
#include "entry/xdp.h"
#include "service/event.h"
#include "service/registry.h"
#include "service/route.h"
#include "service/server_table.h"
#include "sync/daemon.h"

static int __net_init net_init(struct net *net)
{
	struct l4lb_net *ln = l4lb_net(net);
	int err;

	err = l4lb_net_init(ln, net);
	if (err)
		return err;
	l4lb_timeouts_init(&ln->timeouts);
	l4lb_server_trash_init(ln);
	l4lb_defence_init(ln);
	l4lb_sysctl_defaults(&ln->sysctl);
	err = l4lb_route_net_init(ln);
	if (err)
		goto err_net_exit;
	err = l4lb_server_table_init(ln);
	if (err)
		goto err_route_exit;
	err = l4lb_service_net_init(ln);
	if (err)
		goto err_destroy_servers;
	return 0;

err_destroy_servers:
	l4lb_server_table_exit(ln);
err_route_exit:
	l4lb_route_net_exit(ln);
err_net_exit:
	l4lb_net_exit(ln);
	return err;
}

/* Devices still exist: release them, and stop receiving packets. */
static void __net_exit net_pre_exit(struct net *net)
{
	struct l4lb_net *ln = l4lb_net(net);

	mutex_lock(&ln->lock);
	ln->exiting = true;
	l4lb_hook_unregister(ln, AF_INET);
	l4lb_hook_unregister(ln, AF_INET6);
	mutex_unlock(&ln->lock);
	l4lb_sync_net_stop(ln);
	l4lb_route_flush_all(ln);
	l4lb_fast_stop(ln);
}

static void __net_exit net_empty(struct l4lb_net *ln)
{
	mutex_lock(&ln->lock);
	l4lb_service_del_all(ln);
	l4lb_conn_table_stop(ln);
	l4lb_server_bypass_destroy(ln);
	mutex_unlock(&ln->lock);
	l4lb_events_stop(ln);
	l4lb_server_trash_flush(ln);
	l4lb_defence_exit(ln);
}

static void __net_exit net_free(struct l4lb_net *ln)
{
	l4lb_conn_table_destroy(ln);
	l4lb_service_net_exit(ln);
	l4lb_server_table_exit(ln);
	l4lb_fast_destroy(ln);
	l4lb_sync_net_exit(ln);
	l4lb_events_destroy(ln);
	l4lb_nl_log_destroy(ln);
}

/* Thousands of namespaces may go at once: they wait together. */
static void __net_exit net_exit_batch(struct list_head *nets)
{
	bool used = false;
	struct net *net;

	list_for_each_entry(net, nets, exit_list) {
		/* The connection table is created with the first service. */
		used |= rcu_access_pointer(l4lb_net(net)->conns) ||
			l4lb_net(net)->sync;
		net_empty(l4lb_net(net));
		cond_resched();
	}
	if (used)
		synchronize_rcu();	/* lookups of services and connections */
	list_for_each_entry(net, nets, exit_list) {
		net_free(l4lb_net(net));
		cond_resched();
	}
	if (used) {
		/* No RCU callback or work may outlive its namespace. */
		rcu_barrier();
		flush_workqueue(l4lb_wq);
	}
	list_for_each_entry(net, nets, exit_list) {
		l4lb_route_net_exit(l4lb_net(net));
		l4lb_net_exit(l4lb_net(net));
	}
}

static struct pernet_operations net_ops = {
	.init		= net_init,
	.pre_exit	= net_pre_exit,
	.exit_batch	= net_exit_batch,
	.id		= &l4lb_net_id,
	.size		= sizeof(struct l4lb_net),
};

static int __net_init user_init(struct net *net)
{
	struct l4lb_net *ln = l4lb_net(net);
	int err;

	err = l4lb_sysctl_net_init(ln);
	if (err)
		return err;
	err = l4lb_sched_net_init(ln);
	if (err)
		goto err_sysctl_exit;
	err = l4lb_procfs_net_init(ln);
	if (err)
		goto err_sched_exit;
	return 0;

err_sched_exit:
	l4lb_sched_net_exit(ln);
err_sysctl_exit:
	l4lb_sysctl_net_exit(ln);
	return err;
}

static void __net_exit user_exit(struct net *net)
{
	struct l4lb_net *ln = l4lb_net(net);

	l4lb_procfs_net_exit(ln);
	l4lb_sched_net_exit(ln);
	l4lb_sysctl_net_exit(ln);
	l4lb_nl_log_stop(ln);
}

/* Per-namespace user interfaces other than netlink. */
static struct pernet_operations user_ops = {
	.init	= user_init,
	.exit	= user_exit,
};

static int __init l4lb_init(void)
{
	int err;

	l4lb_sysctl_sched_init();
	l4lb_wq = alloc_workqueue("l4lb", WQ_UNBOUND, 0);
	if (!l4lb_wq)
		return -ENOMEM;
	err = l4lb_conn_init();
	if (err)
		goto err_destroy_wq;
	err = register_pernet_subsys(&net_ops);
	if (err)
		goto err_conn_exit;
	err = l4lb_route_init();
	if (err)
		goto err_unregister_net;
	err = l4lb_fast_init();
	if (err)
		goto err_route_exit;
	err = l4lb_sync_init(l4lb_fast_stand_by);
	if (err)
		goto err_fast_exit;
	err = l4lb_netlink_init();
	if (err == -EEXIST) {
		pr_err("the netlink family IPVS is taken: unload ip_vs and its schedulers first (modprobe -r ip_vs)\n");
		/* modprobe takes -EEXIST for "loaded already" and succeeds. */
		err = -EBUSY;
	}
	if (err)
		goto err_sync_exit;
	err = l4lb_ext_init();
	if (err)
		goto err_netlink_exit;
	err = register_pernet_subsys(&user_ops);
	if (err)
		goto err_ext_exit;
	l4lb_nl_log_allow(true);
	l4lb_xdp_init();
	return 0;

err_ext_exit:
	l4lb_ext_exit();
err_netlink_exit:
	l4lb_netlink_exit();
err_sync_exit:
	l4lb_sync_exit();
err_fast_exit:
	l4lb_fast_exit();
err_route_exit:
	l4lb_route_exit();
err_unregister_net:
	unregister_pernet_subsys(&net_ops);
err_conn_exit:
	l4lb_conn_exit();
err_destroy_wq:
	destroy_workqueue(l4lb_wq);
	return err;
}

static void __exit l4lb_exit(void)
{
	l4lb_nl_log_allow(false);
	unregister_pernet_subsys(&user_ops);
	l4lb_ext_exit();
	l4lb_netlink_exit();
	l4lb_sync_exit();
	l4lb_fast_exit();
	l4lb_route_exit();
	unregister_pernet_subsys(&net_ops);
	rcu_barrier();
	l4lb_conn_exit();
	destroy_workqueue(l4lb_wq);
}

module_init(l4lb_init);
module_exit(l4lb_exit);
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
MODULE_DESCRIPTION("Layer-4 load balancer (Linux Virtual Server director)");

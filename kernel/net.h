/* SPDX-License-Identifier: GPL-2.0 */
/* What l4lb keeps per network namespace. */
#ifndef _L4LB_NET_H
#define _L4LB_NET_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "stats.h"

struct ctl_table_header;
struct l4lb_conn_table;

/* Timeouts user space may set, in jiffies.  The others are in state.c. */
struct l4lb_timeouts {
	unsigned int	tcp;		/* ESTABLISHED */
	unsigned int	tcp_fin;	/* FIN_WAIT */
	unsigned int	udp;
};

/* net.ipv4.vs.*: read on the packet path with READ_ONCE(). */
struct l4lb_sysctl {
	int	conn_reuse_mode;	/* 1 */
	int	expire_nodest_conn;	/* 0 */
	int	expire_quiescent_template; /* 0 */
	int	nat_icmp_send;		/* 0 */
	int	pmtu_disc;		/* 1 */
	int	sloppy_sctp;		/* 0 */
	int	sloppy_tcp;		/* 0 */
	int	snat_reroute;		/* 1 */
};

/**
 * struct l4lb_net - l4lb in one network namespace
 * @net: the namespace
 * @conns: connection table; allocated with the first service and kept until
 *	the namespace goes, so an idle namespace costs nothing
 * @svc_table: services by key (RCU readers)
 * @n_fwmark: services by firewall mark; 0 spares the packet path a lookup
 * @n_any_port: services with port 0, likewise
 * @timeouts: settable connection timeouts
 * @sysctl: net.ipv4.vs.*
 * @drops: per-CPU array of L4LB_DROP_MAX counters
 * @stats: totals of the namespace
 * @lock: the configuration mutex; protects everything below and every
 *	write to services, real servers and pools
 * @services: all services, oldest first (RCU readers)
 * @n_services: by family: [0] IPv4, [1] IPv6; hooks are registered while > 0
 * @hooked: by family: hooks are registered
 * @n_mixed: real servers of another family than their service
 * @trash: removed real servers that may yet be added again
 * @trash_work: frees old entries of @trash
 * @est_work: rate estimator
 * @exiting: the namespace is going: nothing may be added
 * @sysctl_header: of the namespace's sysctl directory
 */
struct l4lb_net {
	struct net			*net;
	struct l4lb_conn_table __rcu	*conns;
	struct rhashtable		svc_table;
	unsigned int			n_fwmark;
	unsigned int			n_any_port;
	struct l4lb_timeouts		timeouts;
	struct l4lb_sysctl		sysctl;
	u64 __percpu			*drops;
	struct l4lb_stats		stats;

	struct mutex			lock;
	struct list_head		services;
	unsigned int			n_services[2];
	bool				hooked[2];
	unsigned int			n_mixed;
	struct list_head		trash;
	struct delayed_work		trash_work;
	struct delayed_work		est_work;
	bool				exiting;
	struct ctl_table_header		*sysctl_header;
};

extern unsigned int l4lb_net_id;

static inline struct l4lb_net *l4lb_net(const struct net *net)
{
	return net_generic(net, l4lb_net_id);
}

/* Count a packet that was not forwarded.  Packet context, BH off. */
static inline void l4lb_drop(const struct l4lb_net *ln, enum l4lb_drop reason)
{
	this_cpu_inc(ln->drops[reason]);
}

/* For work that frees what RCU readers may still see; see main.c. */
extern struct workqueue_struct *l4lb_wq;

#endif /* _L4LB_NET_H */

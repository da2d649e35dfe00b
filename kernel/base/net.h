/* SPDX-License-Identifier: GPL-2.0 */
/* Per-namespace state of l4lb. */
#ifndef _L4LB_NET_H
#define _L4LB_NET_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "base/settings.h"
#include "base/stats.h"

struct ctl_table_header;
struct l4lb_conn_table;
struct l4lb_events;
struct l4lb_fast;
struct l4lb_log;
struct l4lb_ranges;
struct l4lb_server;
struct l4lb_sync;
struct l4lb_sync_peers;
struct l4lb_sync_queues;

/**
 * struct l4lb_defence - state of the flood defence
 * @work: checks free memory while a mode is automatic and there are services
 * @rate: in automatic mode, one of this many new flows is dropped
 * @attempts: new flows seen while some of them are dropped
 */
struct l4lb_defence {
	struct delayed_work	work;
	int			rate;
	atomic_t		attempts;
};

/**
 * struct l4lb_net - l4lb in one network namespace
 * @net: the namespace
 * @conns: connection table, from the first service to the namespace's end
 * @bypass: by family, stands in for a real server in bypassed connections
 *	(cache_bypass); allocated with @conns
 * @svc_table: services by key (RCU readers)
 * @n_fwmark: number of services by firewall mark; 0 spares packets a lookup
 * @n_any_port: services with port 0 or with a range, likewise
 * @ranges: services with a range, from the first one to the namespace's end
 * @n_one_packet: services with one-packet scheduling or engine sip, likewise
 * @n_lazy: services with conn-state lazy, likewise
 * @snat: a service has or had full NAT, likewise
 * @fast: the fast path; allocated with @conns
 * @fast_counts: per-CPU array of L4LB_FAST_MAX counters
 * @n_fast_path: services whose policy turns the fast path on
 * @n_fast_new: those of them for which it begins connections, too
 * @fast_since: jiffies; flows admitted to the fast path earlier must be again
 * @sources: where real servers send from, see server_table.c (RCU readers)
 * @server_names: real servers, also those in @trash, by name (configuration mutex)
 * @endpoints: addresses of real servers, see tunnel_table.c (RCU readers)
 * @n_tunnels: real servers with method tunnel; 0 spares packets a lookup
 * @guards: guarded addresses (RCU readers)
 * @n_guards: number of services with a guard, likewise
 * @route_lock: of cached routes and their lists, see route.c; packets take it, too
 * @route_devices: devices that cached routes lead through
 * @route_list: the same, to drop the routes of all
 * @route_neighs: routes that keep a neighbour
 * @route_work: has them release it
 * @timeouts: settable connection timeouts
 * @sysctl: net.ipv4.vs.*
 * @drops: per-CPU array of L4LB_DROP_MAX counters
 * @stats: totals of the namespace
 * @defence: flood defence
 * @events: what listeners were told, allocated with @conns
 * @log: of connections, see netlink_log.c; NULL: no service had LOG
 * @sync: synchronisation daemons, allocated with the first, see sync/daemon.c
 * @sync_queues: messages of the sending daemon (RCU readers); NULL: there is none
 * @sync_receives: a receiving daemon runs
 * @sync_trailer: messages have a trailer: there are peers, or a key
 * @sync_peers: other directors, allocated with @sync
 * @sync_counts: per-CPU array of L4LB_SYNC_COUNTERS counters, allocated with @sync
 * @svc_near: some services by key, by a hash that costs little (RCU readers)
 * @lock: the configuration mutex; protects everything below and every
 *	write to services, real servers and pools
 * @services: all services, oldest first (RCU readers)
 * @generation: changes with every change that a dump would show
 * @last_id: number of the newest service
 * @n_services: by family: [0] IPv4, [1] IPv6; a family's hooks are registered
 *	while its number or @n_mixed is > 0
 * @hooked: by family: hooks are registered
 * @hooks_held: none is unregistered: a batch relies on those it registered
 * @n_inserted: services in @svc_table, limited by sysctl.services_max
 * @n_servers: real servers of services, limited by sysctl.servers_max
 * @n_mixed: real servers of another family than their service
 * @n_placeholders: those of @trash that were not added yet
 * @trash: removed real servers that may yet be added again
 * @lost: those of @trash whose connections expire_nodest_conn has yet to end
 * @trash_work: frees old entries of @trash
 * @exiting: the namespace is going: nothing may be added
 * @sysctl_header: the namespace's sysctl directory
 * @defaults_lock: protects @sched_defaults; taken after @lock
 * @sched_defaults: defaults of schedulers' options, see sched_default.c
 * @trying: 1: a trial of a scheduler is under way, see netlink_trial.c
 * @sched_nets: in the list of all namespaces, see registry.c
 */
struct l4lb_net {
	struct net			*net;
	struct l4lb_conn_table __rcu	*conns;
	struct l4lb_server		*bypass[2];
	struct rhashtable		svc_table;
	struct l4lb_fast		*fast;
	u64 __percpu			*fast_counts;
	unsigned int			n_fast_path, n_fast_new;
	u32				fast_since;
	struct rhashtable		sources;
	struct rhashtable		server_names;
	struct rhashtable		endpoints;
	unsigned int			n_tunnels;
	unsigned int			n_fwmark, n_any_port, n_one_packet, n_lazy, snat;
	struct rhashtable		guards;
	unsigned int			n_guards;
	spinlock_t			route_lock;
	struct rhashtable		route_devices;
	struct list_head		route_list, route_neighs;
	struct delayed_work		route_work;
	struct l4lb_timeouts		timeouts;
	struct l4lb_sysctl		sysctl;
	u64 __percpu			*drops;
	struct l4lb_stats		stats;
	struct l4lb_defence		defence;
	struct l4lb_events		*events;
	struct l4lb_log			*log;
	struct l4lb_sync		*sync;
	struct l4lb_sync_queues __rcu	*sync_queues;
	bool				sync_receives, sync_trailer;
	struct l4lb_sync_peers		*sync_peers;
	u64 __percpu			*sync_counts;
	struct l4lb_service __rcu	*svc_near[64];
	struct l4lb_ranges		*ranges;

	struct mutex			lock;
	struct list_head		services;
	unsigned int			generation;
	u64				last_id;
	unsigned int			n_services[2];
	bool				hooked[2];
	bool				hooks_held;
	unsigned int			n_inserted, n_servers;
	unsigned int			n_mixed;
	unsigned int			n_placeholders;
	struct list_head		trash;
	struct list_head		lost;
	struct delayed_work		trash_work;
	bool				exiting;
	struct ctl_table_header		*sysctl_header;
	spinlock_t			defaults_lock;
	struct list_head		sched_defaults;
	int				trying;
	struct list_head		sched_nets;
};

extern unsigned int l4lb_net_id;

static inline struct l4lb_net *l4lb_net(const struct net *net)
{
	return net_generic(net, l4lb_net_id);
}

/* The same in an RCU section, for packets: without another one. */
static inline struct l4lb_net *l4lb_net_rcu(const struct net *net)
{
	return rcu_dereference(net->gen)->ptr[l4lb_net_id];
}

/* For work that frees objects after a grace period; net_exit() flushes it. */
extern struct workqueue_struct *l4lb_wq;

int l4lb_net_init(struct l4lb_net *ln, struct net *net);
void l4lb_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_NET_H */

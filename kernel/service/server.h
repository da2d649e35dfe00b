/* SPDX-License-Identifier: GPL-2.0 */
/* Real servers: the hosts that connections are forwarded to. */
#ifndef _L4LB_SERVER_H
#define _L4LB_SERVER_H

#include <linux/cache.h>
#include <linux/refcount.h>

#include "service/event.h"
#include "service/newcomer.h"
#include "service/service.h"

struct l4lb_latency;
struct l4lb_route;

/**
 * struct l4lb_tun - how packets are wrapped for a real server
 * @flags: IP_VS_TUNNEL_ENCAP_FLAG_*
 * @port: GUE port, network order
 * @type: IP_VS_CONN_F_TUNNEL_TYPE_*
 * @word: all of it, to be read at once: a packet sent during an edit is wrapped
 *	either the old way or the new way
 */
struct l4lb_tun {
	union {
		struct {
			u16	flags;
			__be16	port;
			u8	type;
		};
		u64		word;
	};
};

/* The settings of a real server. */
struct l4lb_server_config {
	union nf_inet_addr	addr;
	__be16			port;
	u16			af;
	u32			method;		/* IP_VS_CONN_F_FWD_MASK bits */
	int			weight;
	u32			u_thresh;
	u32			l_thresh;
	struct l4lb_tun		tun;
};

/* Identity of a real server in its namespace; all its bytes are hashed. */
struct l4lb_server_name {
	struct l4lb_svc_key	svc;
	union nf_inet_addr	addr;
	__be16			port;
	u16			af;
};

/**
 * struct l4lb_server - a real server of one service
 * @svc: its service; NULL while in the trash (RCU)
 * @ln: its namespace
 * @route: cached output routes (RCU), owned by route.c; [1] for direct routing
 * @tun: tunnel settings; packets read them with l4lb_server_tun()
 * @method: IP_VS_CONN_F_MASQ, _LOCALNODE, _TUNNEL, _DROUTE or _BYPASS
 * @available: configured in a service, not in the trash
 * @drains: its weight is 0; see l4lb_server_set_weight()
 * @over: its connections are over, see l4lb_server_end_conns(); most are still
 *	in the table
 * @on_loss: copy of its service's policy.on_loss while it is in the trash
 * @stats: counters
 * @sched: the part that schedulers see
 * @persist: number of persistence templates
 * @u_thresh: with this many connections it gets no more; 0: no limit
 * @l_thresh: with fewer connections it gets more again; 0: 3/4 of @u_thresh
 * @refs: list membership and connections hold one each
 * @name: its identity, with that of the service it is or was in
 * @by_name: in l4lb_net.server_names from its creation until it leaves the trash
 * @named: the batch that is being applied names it (configuration mutex)
 * @service_id: of the service it is or was in; 0: none yet
 * @heir_of: one in the trash with the same name, whose place it is to take when
 *	it gets into its service
 * @nameless: an heir has its name
 * @stuck: removed, but the pool of its service still has it
 * @placeholder: it never was in a service, see l4lb_server_foresee()
 * @source: what it sends from, see server_table.c, while it is in a service (RCU)
 * @nat: it counts as NATed there
 * @stateless: in the list there
 * @capped: it has an upper threshold, and its service counts it
 * @endpoint: of its address, from its creation until it is freed or about to be
 *	(configuration mutex)
 * @tunnel_counted: how it counts there, see tunnel_table.c
 * @node: in l4lb_service.servers or l4lb_net.trash (configuration mutex)
 * @trashed: jiffies when it was removed
 * @watch: what listeners were told of it
 * @ramp: its slow start
 * @lost: in l4lb_net.lost (configuration mutex)
 * @latency: how long it takes, or NULL: not measured yet
 * @latency_tried: jiffies when a packet last needed memory for that
 * @ghost: what its service's shadow has in its place, with a reference (RCU)
 * @rcu: to free it
 *
 * A packet of an established connection reads the first line, which nothing
 * writes but the end of an interval of @stats.  A connection that opens or
 * closes, and a scheduler that looks at the server, need the line of @sched.
 */
struct l4lb_server {
	struct l4lb_service __rcu	*svc;
	struct l4lb_net			*ln;
	struct l4lb_route __rcu		*route[2];
	struct l4lb_tun			tun;
	u8				method;
	bool				available;
	bool				drains;
	bool				over;
	u8				on_loss;
	struct l4lb_stats		stats;

	struct l4lb_sched_server	sched ____cacheline_aligned;
	atomic_t			persist;
	u32				u_thresh;
	u32				l_thresh;
	refcount_t			refs;

	struct l4lb_server_name		name;
	struct rhash_head		by_name;
	bool				named;
	bool				nameless;
	bool				stuck;
	bool				placeholder;
	u64				service_id;
	struct l4lb_server		*heir_of;
	struct l4lb_source __rcu	*source;
	bool				nat;
	bool				capped;
	struct hlist_node		stateless;
	struct l4lb_endpoint		*endpoint;
	u8				tunnel_counted;
	struct list_head		node;
	unsigned long			trashed;
	struct l4lb_server_watch	watch;
	struct l4lb_server_ramp		ramp;
	struct list_head		lost;
	struct l4lb_latency		*latency;
	u32				latency_tried;
	struct l4lb_server __rcu	*ghost;
	struct rcu_head			rcu;
};

static_assert(offsetof(struct l4lb_server, stats.due) + sizeof(unsigned long) <=
	      L1_CACHE_BYTES);
static_assert(offsetofend(struct l4lb_server, refs) -
	      offsetof(struct l4lb_server, sched) <= L1_CACHE_BYTES);

static inline struct l4lb_server *l4lb_server_of(const struct l4lb_sched_server *d)
{
	return container_of(d, struct l4lb_server, sched);
}

/* Configuration mutex held, or @server is new. */
static inline void l4lb_server_set_weight(struct l4lb_server *server, int weight)
{
	WRITE_ONCE(server->sched.weight, weight);
	WRITE_ONCE(server->drains, !weight);
}

static inline struct l4lb_tun l4lb_server_tun(const struct l4lb_server *server)
{
	return (struct l4lb_tun) { .word = READ_ONCE(server->tun.word) };
}

static inline bool l4lb_server_available(const struct l4lb_server *server)
{
	return READ_ONCE(server->available);
}

static inline bool l4lb_server_over(const struct l4lb_server *server)
{
	return READ_ONCE(server->over);
}

/* Control path: configuration mutex held, may sleep. */
struct l4lb_server *l4lb_server_find(struct l4lb_service *svc,
				     const struct l4lb_server_config *cfg);
struct l4lb_server *l4lb_server_obtain(struct l4lb_service *svc,
				       const struct l4lb_server_config *cfg);
void l4lb_server_forget(struct l4lb_server *server);
int l4lb_server_foresee(struct l4lb_net *ln,
			const struct l4lb_server_name *name, u8 method);
void l4lb_server_save(const struct l4lb_server *server,
		      struct l4lb_server_config *cfg);
void l4lb_server_apply(struct l4lb_server *server,
		       const struct l4lb_server_config *cfg);
void l4lb_server_reweighed(struct l4lb_server *server);

/* l4lb_net.bypass: stands in for a real server in bypassed connections. */
int l4lb_server_bypass_create(struct l4lb_net *ln);
void l4lb_server_bypass_destroy(struct l4lb_net *ln);

void l4lb_server_trash(struct l4lb_server *server);
void l4lb_server_untrash(struct l4lb_server *server);
void l4lb_server_unstick(struct l4lb_service *svc);
void l4lb_server_set_on_loss(struct l4lb_server *server, u8 on_loss);
bool l4lb_server_end_conns(struct l4lb_net *ln);
void l4lb_server_trash_init(struct l4lb_net *ln);
void l4lb_server_trash_flush(struct l4lb_net *ln);

/* Packet path: RCU, BH off. */
void l4lb_server_put(struct l4lb_server *server);

/* After a change of @server's connections; a full barrier lies between. */
void l4lb_server_check_thresholds(struct l4lb_server *server);

/* Tells its pool that its rank may have changed.  A full barrier lies between
 * the change and the call.
 */
static inline void l4lb_server_changed(struct l4lb_server *server)
{
	struct l4lb_match *match = rcu_dereference(server->sched.match);

	if (match)
		l4lb_tournament_mark(match);
}

static inline void l4lb_server_active(struct l4lb_server *server, bool active)
{
	if (active)
		atomic_inc(&server->sched.active);
	else
		atomic_dec(&server->sched.active);
	smp_mb__after_atomic();	/* write it before reading the match */
	l4lb_server_changed(server);
}

/* Without thresholds nothing is ever overloaded. */
static inline void l4lb_server_counted(struct l4lb_server *server)
{
	if (unlikely(READ_ONCE(server->u_thresh) | READ_ONCE(server->sched.overloaded)))
		l4lb_server_check_thresholds(server);
	l4lb_server_changed(server);
}

/* Counts a connection (active or not) or template that holds a reference on @server, and
 * applies the thresholds.
 */
static inline void l4lb_server_bind(struct l4lb_server *server, bool template, bool active)
{
	if (unlikely(template)) {
		atomic_inc(&server->persist);
		return;
	}
	if (active)
		atomic_inc(&server->sched.active);
	atomic_inc(&server->sched.total);
	/* Write them before reading the flag and the match. */
	smp_mb__after_atomic();
	l4lb_server_counted(server);
}

/* Undoes that, and drops the reference. */
void l4lb_server_unbind(struct l4lb_server *server, bool template, bool active);

#endif /* _L4LB_SERVER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Real servers: what connections are forwarded to. */
#ifndef _L4LB_DEST_H
#define _L4LB_DEST_H

#include <linux/refcount.h>

#include "service/service.h"

struct l4lb_route;

/**
 * struct l4lb_tun - how packets are wrapped for a real server
 * @flags: IP_VS_TUNNEL_ENCAP_FLAG_*
 * @port: of GUE, network order
 * @type: IP_VS_CONN_F_TUNNEL_TYPE_*
 *
 * One word, read at once: a packet sent during an edit is wrapped the old way
 * or the new one.
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

/* What user space may set on a real server. */
struct l4lb_dest_config {
	union nf_inet_addr	addr;
	__be16			port;
	u16			af;
	u32			method;		/* IP_VS_CONN_F_FWD_MASK bits */
	int			weight;
	u32			u_thresh;
	u32			l_thresh;
	struct l4lb_tun		tun;
};

/* What a real server is called in its namespace: hashed whole. */
struct l4lb_real_name {
	struct l4lb_svc_key	svc;
	union nf_inet_addr	addr;
	__be16			port;
	u16			af;
};

/* What a real server's packets to clients have as their source. */
struct l4lb_real_key {
	union nf_inet_addr	addr;
	__be16			port;
	u8			af, proto;
};

/**
 * struct l4lb_real - a real server of one service
 * @dest: the part schedulers see; first, see l4lb_real()
 * @method: IP_VS_CONN_F_MASQ, _LOCALNODE, _TUNNEL, _DROUTE or _BYPASS
 * @tun: its tunnel; l4lb_real_tun() for packets
 * @available: configured in a service, not in the trash
 * @on_loss: of its service's policy, once it is in the trash
 * @svc: its service; NULL while in the trash (RCU)
 * @ln: its namespace
 * @route: cached output route (RCU), owned by route.c
 * @route_lock: serialises replacing @route
 * @stats: counters
 * @persist: persistence templates
 * @u_thresh: connections at which it gets no more; 0: no limit
 * @l_thresh: connections below which it gets some again; 0: 3/4 of @u_thresh
 * @refs: list membership, pools and connections hold one each
 * @name: of the service it belongs or belonged to, and its own
 * @by_name: in l4lb_net.real_names from its creation until it leaves the trash
 * @named: by the batch that is being applied (configuration mutex)
 * @by_key: in l4lb_net.reals while it is in a service
 * @key: there
 * @unlisted: RCU state when it was taken out of there, 0 before
 * @node: in l4lb_service.dests or l4lb_net.trash (configuration mutex)
 * @trashed: jiffies when it was removed
 * @rcu: to free it
 */
struct l4lb_real {
	struct l4lb_dest		dest;
	u8				method;
	bool				available;
	u8				on_loss;
	struct l4lb_service __rcu	*svc;
	struct l4lb_net			*ln;
	struct l4lb_tun			tun;
	struct l4lb_route __rcu		*route;
	spinlock_t			route_lock;
	struct l4lb_stats		stats;
	atomic_t			persist;
	u32				u_thresh;
	u32				l_thresh;
	refcount_t			refs;

	struct l4lb_real_name		name;
	struct rhash_head		by_name;
	bool				named;
	struct rhlist_head		by_key;
	struct l4lb_real_key		key;
	unsigned long			unlisted;
	struct list_head		node;
	unsigned long			trashed;
	struct rcu_head			rcu;
};

static inline struct l4lb_real *l4lb_real(const struct l4lb_dest *d)
{
	return container_of(d, struct l4lb_real, dest);
}

static inline struct l4lb_tun l4lb_real_tun(const struct l4lb_real *real)
{
	return (struct l4lb_tun) { .word = READ_ONCE(real->tun.word) };
}

static inline bool l4lb_real_available(const struct l4lb_real *real)
{
	return READ_ONCE(real->available);
}

/* Control path: configuration mutex held, may sleep, errno + extack. */
struct l4lb_real *l4lb_real_find(struct l4lb_service *svc,
				 const struct l4lb_dest_config *cfg);
int l4lb_real_add(struct l4lb_service *svc, const struct l4lb_dest_config *cfg,
		  struct netlink_ext_ack *extack);
int l4lb_real_edit(struct l4lb_service *svc, struct l4lb_real *real,
		   const struct l4lb_dest_config *cfg,
		   struct netlink_ext_ack *extack);
int l4lb_real_del(struct l4lb_service *svc, struct l4lb_real *real,
		  struct netlink_ext_ack *extack);

/* The steps of adding, for those who do many at once.  prepare finds or makes
 * the real server that @cfg means and may fail; then comes release.  What is
 * new (l4lb_real_is_new()) becomes part of the service by enlist, which may not
 * fail; what is not needed any more leaves it by retire.
 */
struct l4lb_real *l4lb_real_prepare(struct l4lb_service *svc,
				    const struct l4lb_dest_config *cfg,
				    struct netlink_ext_ack *extack);
void l4lb_real_release(struct l4lb_real *real);
void l4lb_real_enlist(struct l4lb_real *real, struct l4lb_service *svc);
void l4lb_real_retire(struct l4lb_real *real, struct l4lb_service *svc);
void l4lb_real_save(const struct l4lb_real *real, struct l4lb_dest_config *cfg);
void l4lb_real_apply(struct l4lb_real *real, const struct l4lb_dest_config *cfg);

static inline bool l4lb_real_is_new(const struct l4lb_real *real)
{
	return !real->available;
}

/* Service is going: move all its real servers to the trash. */
void l4lb_real_del_all(struct l4lb_service *svc);
/* The policy of @svc has changed: tell those it had. */
void l4lb_real_set_loss(const struct l4lb_service *svc);
/* Those of all services that a batch names have. */
void l4lb_real_set_loss_named(struct l4lb_net *ln);
/* What connections without a real server are bound to: l4lb_net.bypass. */
int l4lb_real_bypass_create(struct l4lb_net *ln);
void l4lb_real_bypass_destroy(struct l4lb_net *ln);
void l4lb_real_trash_init(struct l4lb_net *ln);
void l4lb_real_trash_flush(struct l4lb_net *ln);

/* Real servers by address (real_table.c). */
int l4lb_real_table_init(struct l4lb_net *ln);
void l4lb_real_table_exit(struct l4lb_net *ln);
int l4lb_real_table_add(struct l4lb_real *real);
void l4lb_real_table_del(struct l4lb_real *real);
int l4lb_real_name_add(struct l4lb_real *real);
void l4lb_real_name_del(struct l4lb_real *real);
struct l4lb_real *l4lb_real_by_name(struct l4lb_net *ln,
				    const struct l4lb_real_name *name);
struct l4lb_real *l4lb_real_by_source(struct l4lb_net *ln,
				      const struct l4lb_flow *flow,
				      bool one_packet);

/* Packet path: RCU, BH off. */
static inline void l4lb_real_hold(struct l4lb_real *real)
{
	refcount_inc(&real->refs);
}

void l4lb_real_put(struct l4lb_real *real);

/* A connection (or template) is bound to @real, which it holds a reference
 * on: counts it and applies the thresholds.  unbind drops the reference.
 */
void l4lb_real_bind(struct l4lb_real *real, bool template);
void l4lb_real_unbind(struct l4lb_real *real, bool template, bool active);

static inline void l4lb_real_active(struct l4lb_real *real, bool active)
{
	if (active)
		atomic_inc(&real->dest.active);
	else
		atomic_dec(&real->dest.active);
}

/* Before the first packet of an interval counts: what counted so far belongs to
 * others.  The real server's last: it is where this is seen.
 */
void l4lb_account_interval(struct l4lb_real *real, struct l4lb_service *svc);

/* Account a forwarded packet to real server, service and namespace. */
static inline void l4lb_account_in(struct l4lb_real *real, unsigned int len)
{
	struct l4lb_service *svc = rcu_dereference(real->svc);

	if (!svc)
		return;
	if (l4lb_stats_due(&real->stats))
		l4lb_account_interval(real, svc);
	l4lb_stats_in(&real->stats, len);
	l4lb_stats_in(&svc->stats, len);
	l4lb_stats_in(&real->ln->stats, len);
}

static inline void l4lb_account_out(struct l4lb_real *real, unsigned int len)
{
	struct l4lb_service *svc = rcu_dereference(real->svc);

	if (!svc)
		return;
	if (l4lb_stats_due(&real->stats))
		l4lb_account_interval(real, svc);
	l4lb_stats_out(&real->stats, len);
	l4lb_stats_out(&svc->stats, len);
	l4lb_stats_out(&real->ln->stats, len);
}

static inline void l4lb_account_conn(struct l4lb_real *real)
{
	struct l4lb_service *svc = rcu_dereference(real->svc);

	if (!svc)
		return;
	if (l4lb_stats_due(&real->stats))
		l4lb_account_interval(real, svc);
	l4lb_stats_conn(&real->stats);
	l4lb_stats_conn(&svc->stats);
	l4lb_stats_conn(&real->ln->stats);
}

#endif /* _L4LB_DEST_H */

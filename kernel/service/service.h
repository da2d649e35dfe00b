/* SPDX-License-Identifier: GPL-2.0 */
/* Virtual services: the addresses that clients connect to. */
#ifndef _L4LB_SERVICE_H
#define _L4LB_SERVICE_H

#include <linux/ip_vs.h>
#include <linux/rhashtable-types.h>

#include "base/net.h"
#include "service/policy.h"
#include "sched.h"

struct netlink_ext_ack;

/* Identity of a service.  With @fwmark, protocol, port and addr are 0.  With @prefix_len it
 * has a range: @addr has no other bits, and the ports are @port to @last_port.
 */
struct l4lb_svc_key {
	union nf_inet_addr	addr;
	u32			fwmark;
	u8			af;		/* AF_INET or AF_INET6 */
	u8			prefix_len;	/* 0: no range */
	u16			protocol;
	__be16			port;
	__be16			last_port;	/* 0: no range */
};

/* The settings of a service that family IPVS has. */
struct l4lb_svc_config {
	char	sched[L4LB_SCHED_NAME_MAX];	/* "none": no scheduler */
	u32	flags;		/* IP_VS_SVC_F_*, already merged by mask */
	u32	timeout;	/* persistence, seconds */
	u32	netmask;	/* IPv4: __be32 mask; IPv6: prefix length */
	bool	sip;		/* persistence engine "sip" */
};

/**
 * struct l4lb_service - a virtual service
 * @node: in l4lb_net.svc_table
 * @key: identity, never changes
 * @ln: its namespace
 * @flags: IP_VS_SVC_F_*; READ_ONCE() on the packet path
 * @timeout: persistence, seconds
 * @netmask: granularity of persistence, as in struct l4lb_svc_config
 * @policy: the settings that family L4LB has
 * @band_ends: reply bytes at which each band but the last ends, see las.c
 * @bands: counters of the bands, or NULL: PRIORITY was never set
 * @uses: L4LB_USE_* of its new connections, as @policy and @shadow say
 * @limit: its limits, or NULL: none was ever set
 * @snat: its source addresses, likewise
 * @refused: jiffies when there was last no room for a connection, see fast_new.c and lazy.c
 * @vip_local: cached answer: is its address one of this host? see fast_new.c
 * @usable: where in @pool one was found that may get a new flow
 * @none_usable: jiffies when none was found
 * @fresh: jiffies when it, or its only real server with a weight, was new
 * @changed: jiffies of the last change of servers, weights or policy
 * @pool: current generation of real servers (RCU; never NULL)
 * @shadow: a second scheduler that only counts, or NULL (RCU)
 * @stats: counters
 * @id: no other service of the namespace has or had this number
 * @inst: scheduler instance (configuration mutex)
 * @servers: struct l4lb_server by .node, oldest first (configuration mutex)
 * @n_servers: their number
 * @n_capped: those that have an upper threshold
 * @n_ramping: those that start slowly
 * @ramp_look: when @ramp_mean was found, see config/ramp.c
 * @ramp_mean: load of the others
 * @ramp_settle: enum l4lb_ramp_settle
 * @stuck: the pool still has a removed server
 * @guard: of its address, once it has or had a guard (configuration mutex)
 * @inserted: it is in l4lb_net.svc_table
 * @named: the batch that is being applied names it (configuration mutex)
 * @claim: its owner and protection (configuration mutex)
 * @prefix: of its range, or NULL (configuration mutex, like the next two)
 * @range_at: index in the prefix's array, or UINT_MAX
 * @joining: in l4lb_prefix.joining
 * @leaves: the batch that is being applied removes it (configuration mutex)
 * @list: in l4lb_net.services
 * @work: to free it
 */
struct l4lb_service {
	struct rhash_head		node;
	struct l4lb_svc_key		key;
	struct l4lb_net			*ln;
	u32				flags;
	u32				timeout;
	u32				netmask;
	struct l4lb_limit		*limit;
	struct l4lb_snat		*snat;
	struct l4lb_policy		policy;
	u32				band_ends[L4LB_BANDS - 1];
	struct l4lb_bands		*bands;
	u32				uses;
	u32				refused;
	u32				vip_local;
	unsigned int			usable;
	unsigned long			none_usable;
	unsigned long			fresh;
	unsigned long			changed;
	struct l4lb_pool __rcu		*pool;
	struct l4lb_stats		stats;
	struct l4lb_shadow __rcu	*shadow;
	u64				id;
	struct l4lb_sched_inst		*inst;
	struct list_head		servers;
	unsigned int			n_servers;
	unsigned int			n_capped;
	unsigned int			n_ramping;
	unsigned long			ramp_look;
	u64				ramp_mean;
	u8				ramp_settle;
	bool				stuck;
	struct l4lb_guarded		*guard;
	bool				inserted;
	bool				named;
	struct l4lb_claim		claim;
	struct l4lb_prefix		*prefix;
	unsigned int			range_at;
	struct list_head		joining;
	bool				leaves;
	struct list_head		list;
	struct rcu_work			work;
};

/* Packet path: RCU.  l4lb_service_lookup() of find.h calls these: for a firewall mark, and
 * for a flow whose service is not among the near ones.
 */
struct l4lb_service *l4lb_service_of_mark(struct l4lb_net *ln, u32 fwmark, u8 af);
struct l4lb_service *l4lb_service_far(struct l4lb_net *ln, const struct l4lb_flow *flow);
/* Which real server a new flow gets, if nothing but flow, options and servers decide;
 * NULL: other things do, or none may take it.  RCU, any context.
 */
struct l4lb_server *l4lb_service_maps(struct l4lb_service *svc,
				      const struct l4lb_flow *flow);
bool l4lb_service_usable(struct l4lb_service *svc);

/* Real servers or weights have changed: l4lb_service_usable() looks again. */
static inline void l4lb_service_look(struct l4lb_service *svc)
{
	WRITE_ONCE(svc->none_usable, jiffies - 1);
	WRITE_ONCE(svc->changed, jiffies);
}

/* Has it persistence engine "sip"?  That counts with persistence only. */
static inline bool l4lb_service_has_sip(const struct l4lb_service *svc)
{
	return READ_ONCE(svc->uses) & L4LB_USE_CALL;
}

/* Are its templates by Call-ID? */
static inline bool l4lb_service_calls(const struct l4lb_service *svc)
{
	return unlikely(l4lb_service_has_sip(svc)) &&
	       READ_ONCE(svc->flags) & IP_VS_SVC_F_PERSISTENT;
}

/* Control path: configuration mutex held, may sleep, errno + extack. */
struct l4lb_service *l4lb_service_find(struct l4lb_net *ln,
				       const struct l4lb_svc_key *key);
void l4lb_service_zero(struct l4lb_service *svc);
const char *l4lb_service_sched_name(const struct l4lb_service *svc);
const struct l4lb_sched_ops *l4lb_service_sched(const struct l4lb_service *svc);
const u32 *l4lb_service_options(const struct l4lb_service *svc);
u32 l4lb_service_option(const struct l4lb_service *svc, unsigned int i);
const char *l4lb_service_path(const struct l4lb_service *svc);

/* The steps of adding and editing: create it, add it to the table, apply settings. */
struct l4lb_service *l4lb_service_create(struct l4lb_net *ln,
					 const struct l4lb_svc_key *key,
					 const struct l4lb_sched_ops *ops);
int l4lb_service_table_add(struct l4lb_service *svc, struct netlink_ext_ack *extack);
void l4lb_service_table_del(struct l4lb_service *svc);
void l4lb_service_apply(struct l4lb_service *svc, const struct l4lb_svc_config *cfg);
void l4lb_service_say_failed(int err, struct netlink_ext_ack *extack);

/* Per namespace. */
int l4lb_service_net_init(struct l4lb_net *ln);
void l4lb_service_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_SERVICE_H */

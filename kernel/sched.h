/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scheduler plug-in interface: with affinity.h, which includes it, the only
 * project header that a file in schedulers/ may include.
 *
 * A scheduler sees three things and nothing else: the flow to place, an
 * immutable pool of real servers, and its own private memory.  It never sees
 * an skb, a connection or a netlink attribute, and it takes no lock on the
 * path that picks.
 */
#ifndef _L4LB_SCHED_H
#define _L4LB_SCHED_H

#include <linux/atomic.h>
#include <linux/device/driver.h>
#include <linux/ip_vs.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/workqueue.h>

#define L4LB_SCHED_NAME_MAX	16	/* with the terminating NUL */
#define L4LB_SCHED_WHAT_MAX	80	/* likewise, of an option's line */
#define L4LB_SCHED_OPTIONS_MAX	16

/* Service flags of the hashing schedulers, in l4lb_pool.flags */
#define L4LB_SCHED_FALLBACK	IP_VS_SVC_F_SCHED1 /* try other servers */
#define L4LB_SCHED_PORT		IP_VS_SVC_F_SCHED2 /* hash the port, too */

/* All that may be a scheduler's. */
#define L4LB_SCHED_FLAGS \
	(IP_VS_SVC_F_SCHED1 | IP_VS_SVC_F_SCHED2 | IP_VS_SVC_F_SCHED3)

/**
 * struct l4lb_flow - what identifies a new flow
 * @saddr: client address; an IPv4 address is in .ip, the other words are 0
 * @daddr: the address the client asked for (the VIP)
 * @sport: client port, network order; 0 for protocols without ports
 * @dport: the port the client asked for, network order
 * @af: AF_INET or AF_INET6
 * @proto: IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP
 * @hash: the connection table's, no business of a scheduler's; 0: not known.
 *	Reset to 0 in any copy whose other fields you change.
 *
 * The core has already undone the inversion of packets quoted by ICMP.
 */
struct l4lb_flow {
	union nf_inet_addr	saddr, daddr;
	__be16			sport, dport;
	u8			af, proto;
	u64			hash;
};

/**
 * struct l4lb_sched_server - the part of a real server that schedulers may read
 * @addr: its address; an IPv4 address is in .ip, the other words are 0
 * @port: its port, network order
 * @af: family of @addr; differs from the flow's in a mixed-family tunnel
 * @overloaded: past its upper connection threshold
 * @weight: 0 to 2^31-1; 0 means that it gets no new connection
 * @last_weight: its last weight that was not 0; 0 if it never had one
 * @active: connections that are being used (TCP: SYN seen to established)
 * @total: all connections, active and inactive
 *
 * Everything but the address changes while it is being read: READ_ONCE().
 */
struct l4lb_sched_server {
	union nf_inet_addr	addr;
	__be16			port;
	u16			af;
	bool			overloaded;
	int			weight;
	int			last_weight;
	atomic_t		active;
	atomic_t		total;
};

/**
 * struct l4lb_pool - one generation of a service's real servers
 * @ops: the scheduler that picks from it, NULL for scheduler "none"
 * @state: per service memory, from init() to exit()
 * @table: per pool memory, from build() to free()
 * @option: values of the scheduler's options: l4lb_option()
 * @flags: service flags (IP_VS_SVC_F_SCHED1.. are the scheduler's own)
 * @af: family of the service: AF_INET or AF_INET6
 * @inst: private to the core
 * @work: private to the core
 * @n: number of entries in @server
 * @server: real servers in the order of adding, oldest first
 *
 * Built under the configuration mutex, published with RCU, never written
 * again except through @state, @table and @option.
 */
struct l4lb_pool {
	const struct l4lb_sched_ops	*ops;
	void				*state;
	void				*table;
	const u32			*option;
	u32				flags;
	u8				af;
	struct l4lb_sched_inst		*inst;
	struct rcu_work			work;
	unsigned int			n;
	struct l4lb_sched_server		*server[] __counted_by(n);
};

/**
 * struct l4lb_sched_option - a number that each service may set for itself
 * @name: what user space calls it: 1 to 15 of a-z 0-9 _ -
 * @min: smallest value
 * @max: largest value
 * @def: value from when a service gets the scheduler until it is set
 * @what: unit and meaning, one line of up to 79 characters for people
 * @sysctl: its default is l4lb_sched_ops.sysctl in the service's namespace
 *
 * A scheduler's table of these is constant.  The values belong to the scheduler
 * instance: they outlive changes of the pool and are gone with the scheduler.
 */
struct l4lb_sched_option {
	char		name[L4LB_SCHED_NAME_MAX];
	u32		min, max, def;
	const char	*what;
	bool		sysctl;
};

/**
 * struct l4lb_sched_ops - one scheduling algorithm
 * @pick: choose a real server for a new flow, or NULL if none may take it
 *	(required; softirq or process context with BH off, under RCU, must not
 *	sleep; several CPUs at once)
 * @build: derive pool->table from pool->server[].  @old is the generation
 *	before with the same scheduler instance, or NULL; a rotation may go on
 *	where it was (optional; may sleep; negative errno)
 * @free: release pool->table, after a grace period (with @build; may sleep)
 * @init: allocate state that outlives pools; ERR_PTR() on failure.  @option
 *	is what l4lb_pool.option will be, valid until after exit(): code that
 *	has no pool at hand reads it with READ_ONCE() (optional; may sleep)
 * @exit: release it, after the last pool is gone (with @init; may sleep)
 * @changed: options were set, perhaps to what they were; for a scheduler that
 *	acts on that at once.  build() is not run (optional; with @init; may
 *	sleep)
 * @options: the numbers a service may set for it, by an index of its choice
 * @n_options: how many, 0 to %L4LB_SCHED_OPTIONS_MAX
 * @flags: of %L4LB_SCHED_FLAGS, those it understands; a service that has it
 *	can have no others
 * @name: what user space calls it; the module is l4lb_<name>
 * @sysctl: name in net.ipv4.vs of what services have that do not set the
 *	options marked with it, all of one default, in seconds (optional)
 * @owner: THIS_MODULE
 * @list: private to the core
 */
struct l4lb_sched_ops {
	/* fast path */
	struct l4lb_sched_server *(*pick)(const struct l4lb_pool *pool,
					  const struct l4lb_flow *flow);

	/* control path, under the configuration mutex */
	int (*build)(struct l4lb_pool *pool, const struct l4lb_pool *old);
	void (*free)(struct l4lb_pool *pool);
	void *(*init)(const u32 *option);
	void (*exit)(void *state);
	void (*changed)(void *state);

	const struct l4lb_sched_option	*options;
	unsigned int			n_options;
	u32				flags;
	char			name[L4LB_SCHED_NAME_MAX];
	const char		*sysctl;
	struct module		*owner;
	struct list_head	list;
};

int l4lb_sched_register(struct l4lb_sched_ops *ops);
void l4lb_sched_unregister(struct l4lb_sched_ops *ops);

/* Everything a scheduler module needs besides its algorithm. */
#define module_l4lb_sched(ops) \
	module_driver(ops, l4lb_sched_register, l4lb_sched_unregister)

/**
 * l4lb_option() - what a service's option is now
 * @pool: of the service
 * @i: the option's index in l4lb_sched_ops.options
 *
 * It may differ from one call to the next.  Options that are set together are
 * not seen to change together.
 *
 * Context: any.
 * Return: a value from the option's min to its max.
 */
static inline u32 l4lb_option(const struct l4lb_pool *pool, unsigned int i)
{
	return READ_ONCE(pool->option[i]);
}

/* May this real server get a new connection? */
static inline bool l4lb_server_usable(const struct l4lb_sched_server *d)
{
	return READ_ONCE(d->weight) > 0 && !READ_ONCE(d->overloaded);
}

/* An active connection counts as much as 257 inactive ones. */
static inline u32 l4lb_server_load(const struct l4lb_sched_server *d)
{
	return ((u32)atomic_read(&d->active) << 8) + atomic_read(&d->total);
}

/* Is a less loaded than b, each in proportion to its weight? */
static inline bool l4lb_server_less(const struct l4lb_sched_server *a,
				    const struct l4lb_sched_server *b)
{
	return (u64)l4lb_server_load(a) * READ_ONCE(b->weight) <
	       (u64)l4lb_server_load(b) * READ_ONCE(a->weight);
}

struct l4lb_sched_server *l4lb_pool_least(const struct l4lb_pool *pool);
struct l4lb_sched_server *l4lb_pool_fastest(const struct l4lb_pool *pool);

/* An address as the hashing schedulers see it: 32 bits, host order. */
static inline u32 l4lb_addr_fold(const struct l4lb_pool *pool,
				 const union nf_inet_addr *addr)
{
	if (pool->af == AF_INET)
		return ntohl(addr->ip);
	return ntohl(addr->ip6[0] ^ addr->ip6[1] ^ addr->ip6[2] ^
		     addr->ip6[3]);
}

/* The client as the hashing schedulers see it. */
static inline u32 l4lb_flow_source(const struct l4lb_pool *pool,
				   const struct l4lb_flow *flow)
{
	u32 fold = l4lb_addr_fold(pool, &flow->saddr);

	return pool->flags & L4LB_SCHED_PORT ? fold + ntohs(flow->sport) : fold;
}

#endif /* _L4LB_SCHED_H */

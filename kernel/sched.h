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
#include <linux/refcount.h>
#include <linux/siphash.h>
#include <linux/workqueue.h>

#include "service/order.h"
#include "service/tournament.h"

#define L4LB_SCHED_NAME_MAX	16	/* with the terminating NUL */
#define L4LB_SCHED_WHAT_MAX	80	/* likewise, of an option's line */
#define L4LB_SCHED_OPTIONS_MAX	16
#define L4LB_SCHED_PATH_MAX	128	/* likewise, of an option's file */

/* Service flags of the hashing schedulers, in l4lb_pool.flags */
#define L4LB_SCHED_FALLBACK	IP_VS_SVC_F_SCHED1 /* try other servers */
#define L4LB_SCHED_PORT		IP_VS_SVC_F_SCHED2 /* hash the port, too */

/* All flags that can belong to a scheduler. */
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
 * @hash: private to the connection table; 0: not known.  Reset to 0 in any copy
 *	whose other fields you change.
 *
 * In packets quoted by ICMP the core has swapped source and destination.
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
 * @latency: read it with l4lb_server_latency()
 * @weight: 0 to 2^31-1; 0 means that it gets no new connection
 * @last_weight: its last weight that was not 0; 0 if it never had one
 * @active: connections in an active state (TCP: from SYN to established)
 * @total: all connections, active and inactive
 * @match: private to the core
 *
 * Everything but the address changes while it is being read: READ_ONCE().
 */
struct l4lb_sched_server {
	union nf_inet_addr	addr;
	__be16			port;
	u16			af;
	bool			overloaded;
	u16			latency;
	int			weight;
	int			last_weight;
	atomic_t		active;
	atomic_t		total;
	struct l4lb_match __rcu	*match;
};

/**
 * struct l4lb_sched_file - what the option with .file names
 * @data: what l4lb_sched_ops.open() made of the open file
 * @id: the number that it gave: never 0
 * @ops: private to the core
 * @refs: private to the core
 * @path: where user space found the file
 */
struct l4lb_sched_file {
	void				*data;
	u32				id;
	const struct l4lb_sched_ops	*ops;
	refcount_t			refs;
	char				path[L4LB_SCHED_PATH_MAX];
};

/**
 * struct l4lb_rank - how good a choice a real server is; the lowest is best
 * @load: divided by @weight this is the rank.  The product of one server's
 *	@load and another's @weight must fit 64 bits
 * @weight: 0: it must not be chosen
 */
struct l4lb_rank {
	u64			load;
	u64			weight;
};

/**
 * struct l4lb_pool - one generation of a service's real servers
 * @ops: the scheduler that picks from it, NULL for scheduler "none"
 * @state: per service memory, from init() to exit()
 * @table: per pool memory, from build() to free()
 * @option: values of the scheduler's options; read them with l4lb_option()
 * @key: the service's secret, if the scheduler has an option for one and that is
 *	not 0; only for build(), which copies it
 * @file: of the option with .file, if that is not 0
 * @flags: service flags (IP_VS_SVC_F_SCHED1.. are the scheduler's own)
 * @af: family of the service: AF_INET or AF_INET6
 * @inst: private to the core
 * @ramp: private to the core
 * @work: private to the core
 * @tournament: private to the core
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
	const siphash_key_t		*key;
	struct l4lb_sched_file		*file;
	u32				flags;
	u8				af;
	struct l4lb_sched_inst		*inst;
	struct l4lb_ramp		*ramp;
	struct rcu_work			work;
	struct l4lb_tournament		*tournament;
	unsigned int			n;
	struct l4lb_sched_server		*server[] __counted_by(n);
};

/**
 * struct l4lb_sched_option - a number that each service may set for itself
 * @name: its name in user space: 1 to 15 of a-z 0-9 _ -; ipvsctl has words for
 *	the values of "order", see %L4LB_OPTION_ORDER
 * @min: smallest value
 * @max: largest value
 * @def: value when a service gets the scheduler
 * @what: unit and meaning, one line of up to 79 characters for people
 * @sysctl: sysctl l4lb_sched_ops.sysctl of the namespace overrides @def
 * @rebuild: only build() reads it, and runs again when it has changed
 * @key: a secret of 128 bits, l4lb_pool.key, that cannot be read back; the value
 *	is its fingerprint, 0 without one.  With @name "key", @rebuild, @min 0,
 *	@max U32_MAX and @def 0
 * @file: user space opens a file, l4lb_pool.file; the value is the number that
 *	l4lb_sched_ops.open() gives it, 0 without one.  At most one; @rebuild,
 *	@min 0, @max U32_MAX and @def 0; "it must be @what" is a sentence
 * @count: nobody sets it: l4lb_sched_ops.count() gives its value
 *
 * A scheduler's table of these is constant.  The values belong to the scheduler
 * instance: they outlive changes of the pool, but not of the scheduler.
 */
struct l4lb_sched_option {
	char		name[L4LB_SCHED_NAME_MAX];
	u32		min, max, def;
	const char	*what;
	bool		sysctl;
	bool		rebuild;
	bool		key;
	bool		file;
	bool		count;
};

/* Option "order" of schedulers whose table depends on the order of the servers. */
#define L4LB_OPTION_ORDER { \
	.name = "order", .max = L4LB_ORDER_ADDRESS, .rebuild = true, \
	.what = "real servers by 0: age, 1: address, as on other directors", \
}

/* Which real server is looked for? */
enum l4lb_greedy {
	L4LB_GREEDY_NOT,	/* not the least loaded one */
	L4LB_GREEDY_WEIGHTED,	/* the least loaded for its weight */
	L4LB_GREEDY_EVENLY,	/* the least loaded, whatever its weight */
	L4LB_GREEDY_PERHAPS,	/* who knows */
};

/* Of a flow, what else than the servers decides alone. */
enum l4lb_maps {
	L4LB_MAPS_NOT,		/* more: load, turns, chance */
	L4LB_MAPS_SOURCE,	/* the client; L4LB_SCHED_PORT: and its port */
	L4LB_MAPS_DESTINATION,	/* the address that it asked for */
};

/**
 * struct l4lb_sched_ops - one scheduling algorithm
 * @pick: choose a real server for a new flow, or NULL if none may take it
 *	(required; softirq or process context with BH off, under RCU, must not
 *	sleep; several CPUs at once)
 * @rank: what @pick gives to l4lb_pool_lowest(), for which the core then keeps
 *	account of changes: a choice among many servers costs little more than
 *	one among few.  A rank depends on nothing but weight, overloaded, active
 *	and total (optional; up to %L4LB_SCHED_RANKS)
 * @build: derive pool->table from pool->server[].  @old is the previous pool of
 *	the same scheduler instance, from which a rotation may continue, or
 *	NULL (optional; may sleep; negative errno)
 * @free: release pool->table, after a grace period (with @build; may sleep).  The
 *	servers may be gone
 * @init: allocate state that outlives pools; ERR_PTR() on failure.  @option
 *	becomes l4lb_pool.option and is valid until after exit(); code without
 *	a pool reads it with READ_ONCE() (optional; may sleep)
 * @exit: release it, after the last pool is gone (with @init; may sleep)
 * @changed: called after options were set, perhaps to the same values, for a
 *	scheduler that acts on that at once.  build() has run before if one with
 *	.rebuild has changed, otherwise it does not run (optional; with @init;
 *	may sleep)
 * @open: makes something of the open file @fd of the calling process, and gives it
 *	a number by which people recognise it; ERR_PTR() if it cannot (with an
 *	option that has .file; may sleep)
 * @close: releases that, after the last pool that has it is gone (with @open; may
 *	sleep)
 * @count: the value of option @i, which has .count (any context)
 * @options: the options that a service may set; the scheduler chooses the order
 * @n_options: their number, 0 to %L4LB_SCHED_OPTIONS_MAX
 * @flags: those of %L4LB_SCHED_FLAGS that it understands; others, which a
 *	service may have, too, must have no effect
 * @maps: what @pick chooses depends on nothing but the flow, the options and the
 *	servers, and it changes nothing: it may be asked without a new flow
 * @greedy: does @pick look for the least loaded server, so that one without connections
 *	gets all new ones?
 * @name: its name in user space; the module is l4lb_<name>
 * @sysctl: name of a setting in net.ipv4.vs, in seconds: the default of all
 *	options with .sysctl set, which must have the same .def (optional)
 * @owner: THIS_MODULE
 * @list: private to the core
 */
struct l4lb_sched_ops {
	/* fast path */
	struct l4lb_sched_server *(*pick)(const struct l4lb_pool *pool,
					  const struct l4lb_flow *flow);
	struct l4lb_rank (*rank[L4LB_SCHED_RANKS])(const struct l4lb_sched_server *d);

	/* control path, under the configuration mutex */
	int (*build)(struct l4lb_pool *pool, const struct l4lb_pool *old);
	void (*free)(struct l4lb_pool *pool);
	void *(*init)(const u32 *option);
	void (*exit)(void *state);
	void (*changed)(void *state);
	void *(*open)(int fd, u32 *id);
	void (*close)(void *data);
	u32 (*count)(const void *state, unsigned int i);

	const struct l4lb_sched_option	*options;
	unsigned int			n_options;
	u32				flags;
	enum l4lb_maps			maps;
	enum l4lb_greedy		greedy;
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
 * l4lb_option() - current value of a service's option
 * @pool: of the service
 * @i: the option's index in l4lb_sched_ops.options
 *
 * The value may differ from one call to the next.  Options that are set
 * together may not change at the same moment.
 *
 * Context: any.
 * Return: a value from the option's min to its max.
 */
static inline u32 l4lb_option(const struct l4lb_pool *pool, unsigned int i)
{
	return READ_ONCE(pool->option[i]);
}

/**
 * l4lb_server_latency() - how long a real server takes to answer
 * @d: the server
 *
 * The moving average of the times between a client's first payload and the first that
 * came back, if its service has "latency on" and its replies pass the director (NAT).
 * An answer loses half of its part in a second or two.  Three failures (a reset, or
 * nothing) without an answer between them count as one of a second, and of four times
 * the average, at least.  A shadow sees it as it is, a trial as it was at its beginning.
 *
 * Context: any.
 * Return: microseconds, up to 2^32, in steps of 1/1024; 0: not known.
 */
static inline u64 l4lb_server_latency(const struct l4lb_sched_server *d)
{
	u16 code = READ_ONCE(d->latency);

	return (u64)(code & 0x7ff) << (code >> 11);
}

/* May this real server get a new connection? */
static inline bool l4lb_server_usable(const struct l4lb_sched_server *d)
{
	return READ_ONCE(d->weight) > 0 && !READ_ONCE(d->overloaded);
}

/* An active connection counts as much as 257 inactive ones. */
static inline u64 l4lb_server_load(const struct l4lb_sched_server *d)
{
	return ((u64)atomic_read(&d->active) << 8) + atomic_read(&d->total);
}

/* Is a less loaded than b, each in proportion to its weight? */
static inline bool l4lb_server_less(const struct l4lb_sched_server *a,
				    const struct l4lb_sched_server *b)
{
	return l4lb_server_load(a) * READ_ONCE(b->weight) <
	       l4lb_server_load(b) * READ_ONCE(a->weight);
}

/* The weight of a real server that may get a new connection, otherwise 0. */
static inline u64 l4lb_server_capacity(const struct l4lb_sched_server *d)
{
	return READ_ONCE(d->overloaded) ? 0 : READ_ONCE(d->weight);
}

/* Is a before b?  No server is before one of the same rank. */
static inline bool l4lb_rank_lower(struct l4lb_rank a, struct l4lb_rank b)
{
	return a.load * b.weight < b.load * a.weight;
}

/* Looks at all of @n servers, from the newest to the oldest.  Return: the index of
 * the lowest ranked, or @n if none may be chosen.
 */
static __always_inline unsigned int
l4lb_scan(struct l4lb_sched_server *const *server, unsigned int n,
	  struct l4lb_rank (*rank)(const struct l4lb_sched_server *d))
{
	struct l4lb_rank lowest = { .load = 1 }, r;	/* infinite */
	unsigned int i, best = n;

	for (i = n; i--;) {
		r = rank(server[i]);
		if (!l4lb_rank_lower(r, lowest))
			continue;
		best = i;
		lowest = r;
	}
	return best;
}

static __always_inline struct l4lb_sched_server *
l4lb_pool_scan(const struct l4lb_pool *pool,
	       struct l4lb_rank (*rank)(const struct l4lb_sched_server *d))
{
	unsigned int i = l4lb_scan(pool->server, pool->n, rank);

	return i < pool->n ? pool->server[i] : NULL;
}

/* The umpire's verdict. */
static __always_inline u32
l4lb_match_winner(const struct l4lb_umpire *u,
		  struct l4lb_rank (*rank)(const struct l4lb_sched_server *d))
{
	unsigned int i = l4lb_scan(u->server, u->n, rank);

	return i < u->n ? u->player[i] : L4LB_NOBODY;
}

/**
 * l4lb_pool_lowest() - the real server of the lowest rank
 * @pool: to choose from
 * @rank: gives a server's rank: the name of a function, not a variable
 *
 * A tie goes to the server added last.  With up to 16 servers, and when @rank
 * is not in l4lb_sched_ops.rank, it looks at each server; otherwise at those
 * that have changed and at a few more, see service/tournament.c.
 *
 * Context: as l4lb_sched_ops.pick.
 * Return: the server, or NULL if none may be chosen.
 */
static __always_inline struct l4lb_sched_server *
l4lb_pool_lowest(const struct l4lb_pool *pool,
		 struct l4lb_rank (*rank)(const struct l4lb_sched_server *d))
{
	unsigned int i = 0, turn;

	if (!pool->tournament)
		return l4lb_pool_scan(pool, rank);
	while (i < L4LB_SCHED_RANKS && pool->ops->rank[i] != rank)
		i++;
	for (turn = 0; i < L4LB_SCHED_RANKS && turn < 2; turn++) {
		struct l4lb_umpire u = { .rank = i };
		struct l4lb_match *match;

		while (l4lb_tournament_next(pool->tournament, &u))
			u.winner = l4lb_match_winner(&u, rank);
		if (u.winner == L4LB_NOBODY)
			return NULL;
		if (!u.chosen)
			break;
		if (rank(u.chosen).weight)
			return u.chosen;
		/* It changed a moment ago, and whoever did that will mark it. */
		match = rcu_dereference(u.chosen->match);
		if (match)
			l4lb_tournament_mark(match);
	}
	return l4lb_pool_scan(pool, rank);
}

/* Connections in proportion to the weight, as l4lb_server_less() compares. */
static inline struct l4lb_rank
l4lb_rank_least(const struct l4lb_sched_server *d)
{
	return (struct l4lb_rank) {
		.load = l4lb_server_load(d), .weight = l4lb_server_capacity(d),
	};
}

/* The delay of one more connection: (active + 1) / weight. */
static inline struct l4lb_rank
l4lb_rank_fastest(const struct l4lb_sched_server *d)
{
	return (struct l4lb_rank) {
		.load = (u64)atomic_read(&d->active) + 1,
		.weight = l4lb_server_capacity(d),
	};
}

/* The usable real server that is least loaded for its weight, or NULL. */
static inline struct l4lb_sched_server *
l4lb_pool_least(const struct l4lb_pool *pool)
{
	return l4lb_pool_lowest(pool, l4lb_rank_least);
}

/* The usable real server with the shortest expected delay, or NULL. */
static inline struct l4lb_sched_server *
l4lb_pool_fastest(const struct l4lb_pool *pool)
{
	return l4lb_pool_lowest(pool, l4lb_rank_fastest);
}

/* An address as the hashing schedulers see it: 32 bits, host order. */
static inline u32 l4lb_addr_fold(const struct l4lb_pool *pool,
				 const union nf_inet_addr *addr)
{
	if (pool->af == AF_INET)
		return ntohl(addr->ip);
	return ntohl(addr->ip6[0] ^ addr->ip6[1] ^ addr->ip6[2] ^
		     addr->ip6[3]);
}

/* The client as the hashing schedulers see it: address, perhaps with port. */
static inline u32 l4lb_flow_source(const struct l4lb_pool *pool,
				   const struct l4lb_flow *flow)
{
	u32 fold = l4lb_addr_fold(pool, &flow->saddr);

	return pool->flags & L4LB_SCHED_PORT ? fold + ntohs(flow->sport) : fold;
}

#endif /* _L4LB_SCHED_H */

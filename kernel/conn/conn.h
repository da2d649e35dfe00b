/* SPDX-License-Identifier: GPL-2.0 */
/* Connections: one client flow bound to one real server. */
#ifndef _L4LB_CONN_H
#define _L4LB_CONN_H

#include <linux/hash.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>

#include "l4lb.h"
#include "conn/lock.h"
#include "conn/local.h"
#include "conn/target.h"
#include "service/server.h"
#include "base/flow.h"

struct l4lb_call;
struct l4lb_call_key;

/* struct l4lb_conn.flags */
enum {
	L4LB_CONN_INACTIVE,	/* counted in total, not in active */
	L4LB_CONN_NO_OUTPUT,	/* replies never seen (DR, tunnel, local) */
	L4LB_CONN_TEMPLATE,
	L4LB_CONN_ASSURED,	/* template: one of its connections was
				 * established or (UDP) answered;
				 * connection: it has told its template so
				 */
	L4LB_CONN_DEAD,		/* out of the table */
	L4LB_CONN_ONE_PACKET,	/* lives for one packet, never in the table */
	L4LB_CONN_CONTROLLED,	/* created through a template, @control */
	L4LB_CONN_NOTED,	/* seq and ack are known */
	L4LB_CONN_HOLDS,	/* counted in its template's n_holders */
	L4LB_CONN_TRACKED,	/* keeps its conntrack entry */
	L4LB_CONN_LARGE,	/* has @served and what follows */
	L4LB_CONN_ANSWERED,	/* a reply was seen (not UDP: once established) */
	L4LB_CONN_ACKED,	/* TCP: its client has sent an ACK */
	L4LB_CONN_HALF_OPEN,	/* counted in its table's n_half_open */
	L4LB_CONN_TRUSTED,	/* template: one of its connections may not be
				 * evicted; connection: its template knows that
				 */
	L4LB_CONN_SYNCED,	/* came by a record of another director */
	L4LB_CONN_DIRTY,	/* other directors do not know its state */
	L4LB_CONN_DUE,		/* they are to be told now */
	L4LB_CONN_BACK = 18,	/* first of 14 bits, see fast_back.h */
};

/* Jiffies.  Times have 32 bits: much older ones would look new again. */
#define L4LB_CONN_TIMEOUT_MAX	(3U << 29)

/**
 * struct l4lb_conn - a connection or a persistence template
 * @last: jiffies of the last packet, accurate to 1/4 s
 * @timeout: jiffies it lives without packets; up to %L4LB_CONN_TIMEOUT_MAX
 * @flags: L4LB_CONN_* bits; the highest: number of its way back, fast_back.h
 * @admitted: jiffies when its present term on the fast path began
 * @refs: template: the table's, plus one for each connection it controls
 * @server: real server; holds a reference; never NULL in the table
 * @control: persistence template it was created through, or NULL
 * @seq: sequence number the server expects next; SCTP: the client packets' tag
 * @ack: number the client expects next; both only for resets, see reset.c
 * @n_holders: template: connections created through it that are not over
 * @recorded: template: @last, if a record was the last to set it, see copy.h
 * @rcu: to free it
 * @af: AF_INET or AF_INET6: decides between @v4 and @v6
 * @proto: IPPROTO_*
 * @method: forwarding method at creation; %L4LB_FULL_NAT: NAT, and it has @local
 * @state: enum l4lb_state
 * @cport: client's port; 0 in a template
 * @vport: destination port of the client's packets
 * @dport: real server's port (what NAT writes, what a listing shows)
 * @packets: number from the client, and time of the last record, see count.h
 * @fast_in: number of the device by which the client's packets may take the
 *	fast path, see fast_device.h
 * @v4: addresses of client, VIP and real server
 * @v6: the same; IPv4 connections are allocated without its upper part
 * @served: bytes of replies it has had; from here on with %L4LB_CONN_LARGE only
 * @uses: L4LB_USE_*; the upper bits: see latency.c
 * @asked: with %L4LB_USE_LATENCY, microseconds from @began to its client's first payload
 * @began: in jiffies; with %L4LB_USE_CLOCK in nanoseconds, as by ktime_get()
 * @call: instead, of a template with %L4LB_USE_CALL, see call.h; may be NULL
 * @ghost: what its service's shadow has chosen, or NULL; with a reference until it ends
 * @local: with %L4LB_USE_SNAT only: what its real server sees in place of its client
 *
 * An IPv4 connection takes one cache line, a large one two.  The real server's
 * address is 0 if its family differs (tunnels): see l4lb_conn_server().
 *
 * Lookups return connections under RCU without a reference: nothing that
 * handles a packet may keep one beyond that packet.  @control, @seq and @ack
 * are overwritten when a connection dies, which may be at any time: read them
 * under l4lb_conn_lock(), and only if the connection is not dead.
 */
struct l4lb_conn {
	u32				last;
	u32				timeout;
	atomic_t			flags;
	union {
		u32			admitted;
		refcount_t		refs;
	};
	struct l4lb_server		*server;
	union {
		struct {
			struct l4lb_conn *control;
			u32		seq;
			u32		ack;
		};
		struct {
			atomic_t	n_holders;
			u32		recorded;
		};
		struct rcu_head		rcu;
	};
	u8				af;
	u8				proto;
	u8				method;
	u8				state;
	__be16				cport;
	__be16				vport;
	__be16				dport;
	u8				packets;
	u8				fast_in;
	union {
		struct {
			__be32		caddr, vaddr, daddr;
		} v4;
		struct {
			struct in6_addr	caddr, vaddr, daddr;
		} v6;
	};
	u32				served;
	u32				uses;
	u32				asked;
	union {
		u64			began;
		struct l4lb_call	*call;
	};
	struct l4lb_server		*ghost;
	struct l4lb_local		local;
};

static_assert(offsetofend(struct l4lb_conn, v4) == 64);
static_assert(offsetof(struct l4lb_conn, local) == 128);

static inline bool l4lb_conn_test(const struct l4lb_conn *conn, int bit)
{
	return atomic_read(&conn->flags) & BIT(bit);
}

static inline void l4lb_conn_set(struct l4lb_conn *conn, int bit)
{
	atomic_or(BIT(bit), &conn->flags);
}

static inline void l4lb_conn_clear(struct l4lb_conn *conn, int bit)
{
	atomic_andnot(BIT(bit), &conn->flags);
}

static inline bool l4lb_conn_test_and_set(struct l4lb_conn *conn, int bit)
{
	return atomic_fetch_or(BIT(bit), &conn->flags) & BIT(bit);
}

static inline bool l4lb_conn_test_and_clear(struct l4lb_conn *conn, int bit)
{
	return atomic_fetch_andnot(BIT(bit), &conn->flags) & BIT(bit);
}

static inline struct l4lb_net *l4lb_conn_net(const struct l4lb_conn *conn)
{
	return conn->server->ln;
}

static inline bool l4lb_conn_has_use(const struct l4lb_conn *conn, u32 use)
{
	return unlikely(l4lb_conn_test(conn, L4LB_CONN_LARGE)) &&
	       READ_ONCE(conn->uses) & use;
}

/* With a local end or without. */
static inline bool l4lb_conn_is_nat(const struct l4lb_conn *conn)
{
	return (conn->method & ~L4LB_FULL_NAT) == IP_VS_CONN_F_MASQ;
}

/* The firewall mark of its service, 0 if that is by address. */
static inline u32 l4lb_conn_fwmark(const struct l4lb_conn *conn)
{
	return conn->server->name.svc.fwmark;
}

static inline union nf_inet_addr l4lb_conn_client(const struct l4lb_conn *conn)
{
	if (conn->af == AF_INET)
		return (union nf_inet_addr){ .ip6 = { conn->v4.caddr } };
	return (union nf_inet_addr){ .in6 = conn->v6.caddr };
}

static inline union nf_inet_addr l4lb_conn_vip(const struct l4lb_conn *conn)
{
	if (conn->af == AF_INET)
		return (union nf_inet_addr){ .ip6 = { conn->v4.vaddr } };
	return (union nf_inet_addr){ .in6 = conn->v6.vaddr };
}

/* In the real server's family, see struct l4lb_sched_server. */
static inline union nf_inet_addr l4lb_conn_server(const struct l4lb_conn *conn)
{
	return conn->server->sched.addr;
}

/* Serialises state changes.  Shared by many connections: never take two. */
#define L4LB_CONN_LOCK_BITS	9
extern struct l4lb_conn_lock l4lb_conn_locks[1 << L4LB_CONN_LOCK_BITS];

static inline spinlock_t *l4lb_conn_lock(const struct l4lb_conn *conn)
{
	return &l4lb_conn_locks[hash_ptr(conn, L4LB_CONN_LOCK_BITS)].lock;
}

/* Jiffies since its last packet; less than 0: another CPU has just seen one. */
static inline s32 l4lb_conn_idle(const struct l4lb_conn *conn)
{
	return (u32)jiffies - READ_ONCE(conn->last);
}

static inline bool l4lb_conn_expired(const struct l4lb_conn *conn)
{
	return l4lb_conn_idle(conn) > (s32)READ_ONCE(conn->timeout);
}

/* A packet was seen: @conn lives @timeout jiffies from now.  One write every
 * quarter of a second keeps the cache line shared between CPUs.
 */
static inline void l4lb_conn_touch(struct l4lb_conn *conn)
{
	u32 now = jiffies;

	if (now - READ_ONCE(conn->last) >= HZ / 4)
		WRITE_ONCE(conn->last, now);
}

struct l4lb_conn *l4lb_conn_create(const struct l4lb_flow *flow,
				   const struct l4lb_conn_target *target,
				   struct l4lb_conn *control, enum l4lb_drop *reason);
struct l4lb_conn *l4lb_conn_create_template(const struct l4lb_flow *key,
					    const struct l4lb_conn_target *target,
					    unsigned int timeout, enum l4lb_drop *reason);
struct l4lb_conn *l4lb_conn_create_call(const struct l4lb_call_key *key,
					const struct l4lb_conn_target *target,
					unsigned int timeout, enum l4lb_drop *reason);
struct l4lb_conn *l4lb_conn_create_copy(const struct l4lb_flow *flow,
					const struct l4lb_conn_target *target,
					bool template, enum l4lb_drop *reason);
struct l4lb_conn *l4lb_conn_copy_call(const struct l4lb_call_key *key,
				      const struct l4lb_conn_target *target,
				      enum l4lb_drop *reason);
void l4lb_conn_init_once(struct l4lb_conn *conn, const struct l4lb_flow *flow,
			 struct l4lb_server *server, __be16 dport);
/* Removes @conn from the table; safe from several CPUs at once. */
void l4lb_conn_kill(struct l4lb_conn *conn, enum l4lb_end why);
void l4lb_conn_set_active(struct l4lb_conn *conn, bool active);
void l4lb_conn_set_holds(struct l4lb_conn *conn, bool holds);
void l4lb_conn_link(struct l4lb_conn *conn, struct l4lb_conn *template);

int l4lb_conn_init(void);
void l4lb_conn_exit(void);

#endif /* _L4LB_CONN_H */

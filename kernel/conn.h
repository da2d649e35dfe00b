/* SPDX-License-Identifier: GPL-2.0 */
/* Connections: one client flow bound to one real server. */
#ifndef _L4LB_CONN_H
#define _L4LB_CONN_H

#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>

#include "dest.h"
#include "flow.h"

enum l4lb_dir {
	L4LB_DIR_IN,		/* client to VIP */
	L4LB_DIR_OUT,		/* real server to client, NAT only */
	L4LB_DIR_TEMPLATE,	/* persistence template */
};

/* One direction of a connection as it is found in the table; from @saddr to
 * @zero it is the hashed key.
 */
struct l4lb_tuple {
	struct rhash_head	node;
	union nf_inet_addr	saddr, daddr;
	__be16			sport, dport;
	u8			af, proto, dir, zero;
};

/* struct l4lb_conn.flags */
enum {
	L4LB_CONN_INACTIVE,	/* counted in total, not in active */
	L4LB_CONN_NO_OUTPUT,	/* replies never seen (DR, tunnel, local) */
	L4LB_CONN_TEMPLATE,
	L4LB_CONN_ASSURED,	/* template: one of its connections answered */
	L4LB_CONN_DEAD,		/* out of the table */
	L4LB_CONN_ONE_PACKET,	/* lives for one packet, never in the table */
	L4LB_CONN_NOTED,	/* seq and ack are known */
	L4LB_CONN_HOLDS,	/* counted in its template's n_holders */
	L4LB_CONN_TRACKED,	/* keeps its conntrack entry */
};

enum { L4LB_CONN_PACKETS_MANY = 9 };

/**
 * struct l4lb_conn - a connection or a persistence template
 * @in: key of the client's packets; of the template
 * @out: key of the real server's replies, hashed only for NAT
 * @daddr: real server's address
 * @dport: real server's port (what NAT writes, what a listing shows)
 * @real: real server; holds a reference; never NULL in the table
 * @control: persistence template it was created through, or NULL
 * @ln: its namespace
 * @flags: L4LB_CONN_* bits
 * @state: enum l4lb_tcp_state, or L4LB_UDP
 * @method: forwarding method at creation
 * @packets: of the client, up to %L4LB_CONN_PACKETS_MANY
 * @fwmark: of the service, 0 if by address
 * @lock: serialises state changes
 * @seq: what the server expects next of the client; SCTP: its tag
 * @ack: what the client expects next; both only for resets, see reset.c
 * @last: jiffies of the last packet, to 1/4 s
 * @timeout: jiffies it lives without packets
 * @n_holders: connections created through this template that are not over
 * @refs: the table's, plus one for each connection it controls
 * @rcu: to free it
 *
 * Lookups return connections under RCU without a reference: nothing that
 * handles a packet may keep one beyond that packet.
 */
struct l4lb_conn {
	struct l4lb_tuple	in;
	struct l4lb_tuple	out;
	union nf_inet_addr	daddr;
	__be16			dport;
	u8			state;
	u8			method;
	u8			packets;
	u32			fwmark;
	unsigned long		flags;
	struct l4lb_real	*real;
	struct l4lb_conn	*control;
	struct l4lb_net		*ln;
	spinlock_t		lock;
	u32			seq;
	u32			ack;
	unsigned long		last;
	unsigned int		timeout;
	u32			admitted;
	u8			fast_device[2];
	u8			fast_back;
	atomic_t		n_holders;
	refcount_t		refs;
	struct rcu_head		rcu;
};

static inline bool l4lb_conn_test(const struct l4lb_conn *conn, int bit)
{
	return test_bit(bit, &conn->flags);
}

/* Seconds it has left without packets, for listings. */
static inline unsigned int l4lb_conn_expires(const struct l4lb_conn *conn)
{
	unsigned long end = READ_ONCE(conn->last) + READ_ONCE(conn->timeout);

	return time_after(end, jiffies) ? (end - jiffies) / HZ : 0;
}

static inline bool l4lb_conn_expired(const struct l4lb_conn *conn)
{
	return time_after(jiffies, READ_ONCE(conn->last) +
				   READ_ONCE(conn->timeout));
}

/* A packet was seen: it lives @timeout jiffies from now.  A write every
 * quarter of a second keeps the line shared between CPUs.
 */
static inline void l4lb_conn_touch(struct l4lb_conn *conn)
{
	unsigned long now = jiffies;

	if (now - READ_ONCE(conn->last) >= HZ / 4)
		WRITE_ONCE(conn->last, now);
}

/* A packet of its client counts; no write to the shared line after a few. */
static inline void l4lb_conn_count_packet(struct l4lb_conn *conn)
{
	u8 packets = READ_ONCE(conn->packets);

	if (packets < L4LB_CONN_PACKETS_MANY)
		WRITE_ONCE(conn->packets, packets + 1);
}

/* Lookup: RCU, BH off.  Expired connections are not found. */
struct l4lb_conn *l4lb_conn_find_in(struct l4lb_net *ln,
				    const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_conn_find_out(struct l4lb_net *ln,
				     const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_conn_find_passing(struct l4lb_net *ln,
					 const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_conn_find_template(struct l4lb_net *ln,
					  const struct l4lb_flow *key);

struct l4lb_conn *l4lb_conn_create(struct l4lb_net *ln,
				   const struct l4lb_flow *flow,
				   struct l4lb_real *real, __be16 dport,
				   u32 fwmark, struct l4lb_conn *control);
struct l4lb_conn *l4lb_conn_create_template(struct l4lb_net *ln,
					    const struct l4lb_flow *key,
					    struct l4lb_real *real,
					    __be16 dport, u32 fwmark,
					    unsigned int timeout);
void l4lb_conn_init_once(struct l4lb_conn *conn, struct l4lb_net *ln,
			 const struct l4lb_flow *flow, struct l4lb_real *real,
			 __be16 dport);
/* Takes it out of the table; safe from several CPUs at once. */
void l4lb_conn_kill(struct l4lb_conn *conn);
void l4lb_conn_set_active(struct l4lb_conn *conn, bool active);
void l4lb_conn_set_holds(struct l4lb_conn *conn, bool holds);

/* The table of a namespace (conn_table.c). */
int l4lb_conn_table_create(struct l4lb_net *ln);	/* configuration mutex */
void l4lb_conn_table_destroy(struct l4lb_net *ln);
void l4lb_conn_flush(struct l4lb_net *ln);
/* Kill the connections of removed real servers (expire_nodest_conn). */
void l4lb_conn_expire_nodest(struct l4lb_net *ln);
unsigned int l4lb_conn_table_size(struct l4lb_net *ln);	/* buckets */

/* Walk for listings (procfs): start/stop bracket a read section that holds
 * RCU; next returns NULL at the end, skips expired ones and reply tuples.
 * A walk survives between start/stop pairs and is linear over a whole dump.
 */
struct l4lb_conn_walk;
struct l4lb_conn_walk *l4lb_conn_walk_open(struct l4lb_net *ln);
void l4lb_conn_walk_close(struct l4lb_conn_walk *walk);
void l4lb_conn_walk_start(struct l4lb_conn_walk *walk);
struct l4lb_conn *l4lb_conn_walk_next(struct l4lb_conn_walk *walk);
void l4lb_conn_walk_stop(struct l4lb_conn_walk *walk);

int l4lb_conn_init(void);
void l4lb_conn_exit(void);
void l4lb_conn_table_init(void);

#endif /* _L4LB_CONN_H */

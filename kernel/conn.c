// SPDX-License-Identifier: GPL-2.0
/*
 * Connections: created for a new flow, found by its packets, killed once.
 *
 * Life of a connection:
 *
 *	create -> in the table -> kill -> last reference -> grace period -> freed
 *
 * Packets use connections under RCU and take no reference.  kill() may race
 * with itself and with state changes; conn->lock decides who counts what.
 */
#include "conn.h"

#include <linux/slab.h>

#include "conn_table.h"
#include "conntrack.h"
#include "state.h"

#define CONN_TIMEOUT_NEW	(3 * HZ)	/* until the first state change */

static struct kmem_cache *conn_cache;

static void tuple_fill(struct l4lb_tuple *tuple, const struct l4lb_flow *flow,
		       enum l4lb_dir dir)
{
	tuple->saddr = flow->saddr;
	tuple->daddr = flow->daddr;
	tuple->sport = flow->sport;
	tuple->dport = flow->dport;
	tuple->af = flow->af;
	tuple->proto = flow->proto;
	tuple->dir = dir;
	tuple->zero = 0;
}

static struct l4lb_conn *find(struct l4lb_net *ln,
			      const struct l4lb_flow *flow, enum l4lb_dir dir)
{
	struct l4lb_tuple key;
	struct l4lb_conn *conn;

	tuple_fill(&key, flow, dir);
	conn = l4lb_conn_table_find(ln, &key);
	return conn && l4lb_conn_alive(conn) ? conn : NULL;
}

/* The connection of a packet from a client. */
struct l4lb_conn *l4lb_conn_find_in(struct l4lb_net *ln,
				    const struct l4lb_flow *flow)
{
	return find(ln, flow, L4LB_DIR_IN);
}

/* The NATed connection of a packet from a real server. */
struct l4lb_conn *l4lb_conn_find_out(struct l4lb_net *ln,
				     const struct l4lb_flow *flow)
{
	return find(ln, flow, L4LB_DIR_OUT);
}

/*
 * The connection of a reply that has the VIP as its source already: with
 * direct routing and tunnels, where the director is on the way back, and from
 * a real server on this host.
 */
struct l4lb_conn *l4lb_conn_find_passing(struct l4lb_net *ln,
					 const struct l4lb_flow *flow)
{
	struct l4lb_flow inverse = l4lb_flow_inverse(flow);
	struct l4lb_conn *conn = find(ln, &inverse, L4LB_DIR_IN);

	return conn && conn->method != IP_VS_CONN_F_MASQ ? conn : NULL;
}

struct l4lb_conn *l4lb_conn_find_template(struct l4lb_net *ln,
					  const struct l4lb_flow *key)
{
	return find(ln, key, L4LB_DIR_TEMPLATE);
}

/*
 * Fill in @conn for @flow.  A connection that never goes into the table (one
 * packet) needs nothing more; @real is not referenced here.
 */
void l4lb_conn_init_once(struct l4lb_conn *conn, struct l4lb_net *ln,
			 const struct l4lb_flow *flow, struct l4lb_real *real,
			 __be16 dport)
{
	memset(conn, 0, sizeof(*conn));
	tuple_fill(&conn->in, flow, L4LB_DIR_IN);
	conn->out = (struct l4lb_tuple) {
		.saddr	= real->dest.addr,
		.daddr	= flow->saddr,
		.sport	= dport,
		.dport	= flow->sport,
		.af	= flow->af,
		.proto	= flow->proto,
		.dir	= L4LB_DIR_OUT,
	};
	conn->daddr = real->dest.addr;
	conn->dport = dport;
	conn->real = real;
	conn->ln = ln;
	conn->method = READ_ONCE(real->method);
	conn->state = l4lb_state_first(flow->proto);
	conn->last = jiffies;
	conn->timeout = CONN_TIMEOUT_NEW;
	__set_bit(L4LB_CONN_INACTIVE, &conn->flags);
	if (conn->method != IP_VS_CONN_F_MASQ)
		__set_bit(L4LB_CONN_NO_OUTPUT, &conn->flags);
	spin_lock_init(&conn->lock);
	refcount_set(&conn->refs, 1);
}

static void conn_free_rcu(struct rcu_head *head)
{
	kmem_cache_free(conn_cache, container_of(head, struct l4lb_conn, rcu));
}

static void conn_put(struct l4lb_conn *conn)
{
	if (refcount_dec_and_test(&conn->refs))
		call_rcu(&conn->rcu, conn_free_rcu);
}

/* The template lives on for its time from the end of @conn, which was @when. */
static void let_go(struct l4lb_conn *conn, unsigned long when)
{
	struct l4lb_conn *control = conn->control;

	if (!test_and_clear_bit(L4LB_CONN_HOLDS, &conn->flags))
		return;
	if (time_after(when, READ_ONCE(control->last)))
		WRITE_ONCE(control->last, when);
	smp_mb__before_atomic();	/* its time before nobody holds it */
	atomic_dec(&control->n_holders);
}

/* Undo what creation did before the table: references and counters. */
static void conn_release(struct l4lb_conn *conn, bool active)
{
	struct l4lb_conn *control = conn->control;

	l4lb_real_unbind(conn->real, l4lb_conn_test(conn, L4LB_CONN_TEMPLATE),
			 active);
	if (control) {
		let_go(conn, READ_ONCE(conn->last));
		conn_put(control);
	}
	conn_put(conn);
}

static struct l4lb_conn *conn_alloc(struct l4lb_net *ln,
				    const struct l4lb_flow *flow,
				    struct l4lb_real *real, __be16 dport,
				    u32 fwmark)
{
	struct l4lb_conn *conn;

	/* A template may be the last to know it, and be dying. */
	if (!refcount_inc_not_zero(&real->refs))
		return NULL;
	conn = kmem_cache_alloc(conn_cache, GFP_ATOMIC);
	if (!conn) {
		l4lb_real_put(real);
		return NULL;
	}
	l4lb_conn_init_once(conn, ln, flow, real, dport);
	conn->fwmark = fwmark;
	if (READ_ONCE(ln->sysctl.conntrack) &&
	    conn->method == IP_VS_CONN_F_MASQ)
		__set_bit(L4LB_CONN_TRACKED, &conn->flags);
	return conn;
}

/*
 * Put @conn into the table, or give it up for the one that is there already:
 * two first packets of a flow may race.  Returns the one in the table, NULL
 * without memory.
 */
static struct l4lb_conn *conn_insert(struct l4lb_conn *conn)
{
	struct l4lb_conn *old = l4lb_conn_table_insert(conn);
	int tries = 3;

	while (!IS_ERR_OR_NULL(old) && !l4lb_conn_alive(old) && tries--) {
		l4lb_conn_kill(old);
		old = l4lb_conn_table_insert(conn);
	}
	if (!old)
		return conn;
	conn_release(conn, false);
	return IS_ERR(old) || !l4lb_conn_alive(old) ? NULL : old;
}

/*
 * A connection for @flow to @real, which counts it.  @dport is what the real
 * server listens on, @fwmark the service's, @control the template that chose
 * @real.  RCU, BH off.  The result is in the table; it may be one that
 * another CPU made for the same flow.  NULL without memory.
 */
struct l4lb_conn *l4lb_conn_create(struct l4lb_net *ln,
				   const struct l4lb_flow *flow,
				   struct l4lb_real *real, __be16 dport,
				   u32 fwmark, struct l4lb_conn *control)
{
	struct l4lb_conn *conn, *res;

	conn = conn_alloc(ln, flow, real, dport, fwmark);
	if (!conn)
		return NULL;
	if (control && refcount_inc_not_zero(&control->refs)) {
		atomic_inc(&control->n_holders);
		__set_bit(L4LB_CONN_HOLDS, &conn->flags);
		conn->control = control;
	}
	l4lb_real_bind(real, false);
	res = conn_insert(conn);
	if (res == conn)
		l4lb_account_conn(real);
	return res;
}

/*
 * A persistence template: connections whose flow masks to @key go to @real
 * for @timeout jiffies after the last new one.  RCU, BH off.
 */
struct l4lb_conn *l4lb_conn_create_template(struct l4lb_net *ln,
					    const struct l4lb_flow *key,
					    struct l4lb_real *real,
					    __be16 dport, u32 fwmark,
					    unsigned int timeout)
{
	struct l4lb_conn *conn = conn_alloc(ln, key, real, dport, fwmark);

	if (!conn)
		return NULL;
	conn->in.dir = L4LB_DIR_TEMPLATE;
	__clear_bit(L4LB_CONN_TRACKED, &conn->flags);
	conn->timeout = timeout;
	__set_bit(L4LB_CONN_TEMPLATE, &conn->flags);
	l4lb_real_bind(real, true);
	return conn_insert(conn);
}

/* Any context with RCU. */
void l4lb_conn_kill(struct l4lb_conn *conn)
{
	bool dead, active;

	spin_lock_bh(&conn->lock);
	dead = test_and_set_bit(L4LB_CONN_DEAD, &conn->flags);
	active = !l4lb_conn_test(conn, L4LB_CONN_INACTIVE);
	spin_unlock_bh(&conn->lock);
	if (dead)
		return;
	l4lb_conn_table_remove(conn);
	if (l4lb_conn_test(conn, L4LB_CONN_TRACKED))
		l4lb_ct_drop(conn);
	conn_release(conn, active);
}

/* Move @conn between active and inactive.  conn->lock held. */
void l4lb_conn_set_active(struct l4lb_conn *conn, bool active)
{
	lockdep_assert_held(&conn->lock);
	if (active != l4lb_conn_test(conn, L4LB_CONN_INACTIVE) ||
	    l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ||
	    l4lb_conn_test(conn, L4LB_CONN_ONE_PACKET))
		return;
	if (active)
		clear_bit(L4LB_CONN_INACTIVE, &conn->flags);
	else
		set_bit(L4LB_CONN_INACTIVE, &conn->flags);
	l4lb_real_active(conn->real, active);
}

/* Does @conn keep the template it was made by?  conn->lock held. */
void l4lb_conn_set_holds(struct l4lb_conn *conn, bool holds)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->control)
		return;
	if (!holds)
		let_go(conn, jiffies);
	else if (!test_and_set_bit(L4LB_CONN_HOLDS, &conn->flags))
		atomic_inc(&conn->control->n_holders);
}

int __init l4lb_conn_init(void)
{
	l4lb_conn_table_init();
	conn_cache = kmem_cache_create("l4lb_conn", sizeof(struct l4lb_conn),
				       0, SLAB_HWCACHE_ALIGN, NULL);
	return conn_cache ? 0 : -ENOMEM;
}

/* After an rcu_barrier(): nothing is on its way to conn_free_rcu(). */
void l4lb_conn_exit(void)
{
	kmem_cache_destroy(conn_cache);
}

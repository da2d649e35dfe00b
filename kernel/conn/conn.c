// SPDX-License-Identifier: GPL-2.0
/*
 * Connections: created for a new flow, found by its packets, killed once.
 *
 * Life of a connection:
 *
 *	create -> in the table -> kill -> last reference -> grace period -> freed
 *
 * Packets use connections under RCU and take no reference.  kill() may race
 * with itself and with state changes; under l4lb_conn_lock() each counts once.
 */
#include "conn/conn.h"

#include <linux/slab.h>

#include "conn/admit.h"
#include "conn/call.h"
#include "conn/ghost.h"
#include "conn/insert.h"
#include "conn/log.h"
#include "conn/share.h"
#include "conn/conntrack.h"
#include "conn/helper.h"
#include "conn/latency.h"
#include "conn/memory.h"
#include "conn/state.h"
#include "conn/timeout.h"
#include "service/account.h"
#include "service/shadow.h"

#define CREATE_TRACE_POINTS
#include "conn/trace.h"

#define CONN_TIMEOUT_NEW	(3 * HZ)	/* until the first state change */

struct l4lb_conn_lock l4lb_conn_locks[1 << L4LB_CONN_LOCK_BITS];

/* What a new connection needs its large part for; that is decided once. */
static u32 uses_of(const struct l4lb_server *server)
{
	const struct l4lb_service *svc = rcu_dereference(server->svc);
	u32 uses = svc ? READ_ONCE(svc->uses) : 0;

	if (likely(!uses))
		return 0;
	if (READ_ONCE(server->method) != IP_VS_CONN_F_MASQ)
		uses &= ~(L4LB_USE_SERVED | L4LB_USE_LATENCY | L4LB_USE_SNAT);
	if (uses & L4LB_USE_CALL)	/* what a real server sends may begin it */
		uses &= ~L4LB_USE_SNAT;
	return uses;
}

static __always_inline void
fill_addresses(struct l4lb_conn *conn, const struct l4lb_flow *flow, u8 af,
	       const struct l4lb_sched_server *server)
{
	const bool same = server->af == af;

	if (af == AF_INET) {
		conn->v4.caddr = flow->saddr.ip;
		conn->v4.vaddr = flow->daddr.ip;
		conn->v4.daddr = same ? server->addr.ip : 0;
	} else {
		conn->v6.caddr = flow->saddr.in6;
		conn->v6.vaddr = flow->daddr.in6;
		conn->v6.daddr = same ? server->addr.in6 : in6addr_any;
	}
}

/* Each field by itself, which is quicker than to clear @conn before. */
static __always_inline void
conn_init(struct l4lb_conn *conn, const struct l4lb_flow *flow,
	  struct l4lb_server *server, __be16 dport)
{
	/* Read before the first write, which the compiler could not prove harmless. */
	const u8 method = READ_ONCE(server->method), af = flow->af, proto = flow->proto;
	const __be16 cport = flow->sport, vport = flow->dport;

	conn->last = jiffies;
	conn->timeout = CONN_TIMEOUT_NEW;
	/* Not visible to other CPUs yet. */
	atomic_set(&conn->flags, BIT(L4LB_CONN_INACTIVE) |
		   (method != IP_VS_CONN_F_MASQ ? BIT(L4LB_CONN_NO_OUTPUT) : 0));
	conn->admitted = 0;
	conn->server = server;
	conn->control = NULL;
	conn->seq = 0;
	conn->ack = 0;
	conn->af = af;
	conn->proto = proto;
	conn->method = method;
	conn->state = l4lb_state_first(proto);
	conn->cport = cport;
	conn->vport = vport;
	conn->dport = dport;
	conn->packets = 0;
	conn->fast_in = 0;
	fill_addresses(conn, flow, af, &server->sched);
}

/*
 * Fill in @conn for @flow.  A connection that never goes into the table (one
 * packet) needs nothing more; @server is not referenced here.
 */
void l4lb_conn_init_once(struct l4lb_conn *conn, const struct l4lb_flow *flow,
			 struct l4lb_server *server, __be16 dport)
{
	conn_init(conn, flow, server, dport);
}

static void conn_free_rcu(struct rcu_head *head)
{
	struct l4lb_conn *conn = container_of(head, struct l4lb_conn, rcu);

	kfree(l4lb_conn_call(conn));
	l4lb_conn_free(conn);
}

/* Only templates have a reference count: their connections refer to them. */
static void conn_put(struct l4lb_conn *conn)
{
	if (!l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ||
	    refcount_dec_and_test(&conn->refs))
		call_rcu(&conn->rcu, conn_free_rcu);
}

/* The template's timeout runs again from @when, the end of @conn. */
static void let_go(struct l4lb_conn *conn, u32 when)
{
	struct l4lb_conn *control = conn->control;

	if (!l4lb_conn_test_and_clear(conn, L4LB_CONN_HOLDS))
		return;
	if ((s32)(when - READ_ONCE(control->last)) > 0)
		WRITE_ONCE(control->last, when);
	smp_mb__before_atomic();	/* write its time before releasing it */
	atomic_dec(&control->n_holders);
	if (static_branch_unlikely(&l4lb_conn_watched) &&
	    !atomic_read(&control->n_holders))
		l4lb_conn_set(control, L4LB_CONN_DIRTY);
}

/* Undo what creation did before the insertion: references and counters.  @conn
 * is dead, or was never in the table: @control is still valid.
 */
static void conn_release(struct l4lb_conn *conn, struct l4lb_conn_table *table,
			 bool active)
{
	bool template = l4lb_conn_test(conn, L4LB_CONN_TEMPLATE);

	l4lb_server_unbind(conn->server, template, active);
	l4lb_conn_not_half_open(conn, table);
	if (l4lb_conn_test(conn, L4LB_CONN_CONTROLLED)) {
		let_go(conn, READ_ONCE(conn->last));
		conn_put(conn->control);
	}
	conn_put(conn);
	l4lb_conn_table_release(table, template);
}

static void enlarge(struct l4lb_conn *conn, u32 uses)
{
	bool exact = uses & L4LB_USE_LATENCY;

	conn->served = 0;
	conn->uses = uses | (exact ? L4LB_USE_CLOCK : 0);
	conn->asked = 0;
	/* A tick is enough for the log, and costs nothing. */
	if (uses & L4LB_USE_CALL)
		conn->call = NULL;
	else
		conn->began = exact ? ktime_get_ns() : get_jiffies_64();
	conn->ghost = NULL;
	if (uses & L4LB_USE_SNAT && conn->method == IP_VS_CONN_F_MASQ)
		conn->method = L4LB_FULL_NAT;
	l4lb_conn_set(conn, L4LB_CONN_LARGE);
}

static struct l4lb_conn_table *table_of(const struct l4lb_conn_target *target)
{
	return rcu_dereference(target->server->ln->conns);
}

/* The table has admitted it; if there is no memory, its place is free again. */
static __always_inline struct l4lb_conn *
conn_make(struct l4lb_conn_table *table, const struct l4lb_flow *flow,
	  const struct l4lb_conn_target *target, bool template,
	  enum l4lb_drop *reason)
{
	struct l4lb_server *server = target->server;
	struct l4lb_conn *conn;
	u32 uses;

	/* A dying template may have had the last reference on @server. */
	if (!refcount_inc_not_zero(&server->refs))
		goto release;
	uses = uses_of(server) & (template ? L4LB_USE_SHADOWED | L4LB_USE_CALL :
				  ~(L4LB_USE_CALL | L4LB_USE_HELPER));
	if (unlikely(uses) && !target->first)	/* no packet of its client began it */
		uses &= ~L4LB_USE_LATENCY;
	conn = l4lb_conn_alloc(flow->af, uses);
	if (unlikely(!conn))
		goto put_server;
	conn_init(conn, flow, server, target->dport);
	if (unlikely(uses))
		enlarge(conn, uses);
	return conn;

put_server:
	l4lb_server_put(server);
release:
	*reason = L4LB_DROP_MEMORY;
	l4lb_conn_table_release(table, template);
	return NULL;
}

static __always_inline struct l4lb_conn *
conn_alloc(struct l4lb_conn_table *table, const struct l4lb_flow *flow,
	   const struct l4lb_conn_target *target, bool template,
	   enum l4lb_drop *reason)
{
	if (!l4lb_conn_table_admit(table, flow, template)) {
		*reason = L4LB_DROP_FULL;
		return NULL;
	}
	return conn_make(table, flow, target, template, reason);
}

/* Marks @conn dead, so that no later state change counts it.  *@active: its
 * server counts it as active.  Return: false if it was dead already.
 */
static bool conn_end(struct l4lb_conn *conn, bool *active)
{
	bool dead;

	spin_lock_bh(l4lb_conn_lock(conn));
	dead = l4lb_conn_test_and_set(conn, L4LB_CONN_DEAD);
	*active = !l4lb_conn_test(conn, L4LB_CONN_INACTIVE);
	spin_unlock_bh(l4lb_conn_lock(conn));
	return !dead;
}

/* @old is in the way of @conn: a dead one goes. */
static noinline struct l4lb_conn *
insert_again(struct l4lb_conn_table *table, struct l4lb_conn *conn,
	     const struct l4lb_flow *flow, struct l4lb_conn *old,
	     enum l4lb_drop *reason)
{
	int tries = 3;
	bool active;

	*reason = L4LB_DROP_MEMORY;
	while (!IS_ERR_OR_NULL(old) && !l4lb_conn_alive(old) && tries--) {
		l4lb_conn_kill(old, L4LB_END_EXPIRED);
		old = l4lb_conn_table_insert(table, conn, flow);
	}
	/* A copy takes nobody's place. */
	if (old == ERR_PTR(-EMLINK) &&
	    !l4lb_conn_test(conn, L4LB_CONN_SYNCED) &&
	    l4lb_conn_table_evict_equal(table, conn))
		old = l4lb_conn_table_insert(table, conn, flow);
	if (!old) {
		trace_l4lb_conn_new(conn, L4LB_END_UNSPEC);
		return conn;
	}
	/* Meanwhile a reply may have found @conn and made it active, or killed it. */
	if (conn_end(conn, &active)) {
		l4lb_ghost_leave(conn, active);
		conn_release(conn, table, active);
	}
	if (old == ERR_PTR(-EMLINK))
		*reason = L4LB_DROP_SAME_REPLIES;
	else if (old == ERR_PTR(-EADDRINUSE))
		*reason = L4LB_DROP_NO_PORT;
	return IS_ERR(old) || !l4lb_conn_alive(old) ? NULL : old;
}

/* What comes of inserting @conn, which gave @old: two first packets of a flow may race. */
static __always_inline struct l4lb_conn *
inserted(struct l4lb_conn_table *table, struct l4lb_conn *conn,
	 const struct l4lb_flow *flow, struct l4lb_conn *old, enum l4lb_drop *reason)
{
	if (unlikely(old))
		return insert_again(table, conn, flow, old, reason);
	trace_l4lb_conn_new(conn, L4LB_END_UNSPEC);
	return conn;
}

/*
 * Insert @conn, or free it if the table already has a connection for this flow.
 * Returns the one in the table.  NULL without memory, or, with that as *@reason, if
 * the replies to too many connections have the same header, or there is no port.
 */
static struct l4lb_conn *
conn_insert(struct l4lb_conn_table *table, struct l4lb_conn *conn,
	    const struct l4lb_flow *flow, enum l4lb_drop *reason)
{
	return inserted(table, conn, flow, l4lb_conn_table_insert(table, conn, flow), reason);
}

static noinline struct l4lb_conn *
insert_shadowed(struct l4lb_conn_table *table, struct l4lb_conn *conn,
		const struct l4lb_flow *flow, const struct l4lb_conn *template,
		enum l4lb_drop *reason)
{
	bool shadowed = l4lb_ghost_join(conn, flow, template);
	struct l4lb_conn *res = conn_insert(table, conn, flow, reason);

	if (res == conn && shadowed)
		l4lb_shadow_got(conn->server, conn->ghost);
	return res;
}

/* Is its conntrack entry kept? */
static __always_inline void set_tracked(struct l4lb_conn *conn)
{
	if ((READ_ONCE(l4lb_conn_net(conn)->sysctl.conntrack) && l4lb_conn_is_nat(conn)) ||
	    (l4lb_helper_used() && l4lb_helper_controls(conn)))
		l4lb_conn_set(conn, L4LB_CONN_TRACKED);
}

/* @conn, which no reader sees yet, is one of those of the template @control. */
static void join(struct l4lb_conn *conn, struct l4lb_conn *control)
{
	if (!refcount_inc_not_zero(&control->refs))
		return;
	atomic_inc(&control->n_holders);
	if (static_branch_unlikely(&l4lb_conn_watched))
		l4lb_watch_held(control);
	conn->control = control;
	l4lb_conn_set(conn, L4LB_CONN_HOLDS);
	l4lb_conn_set(conn, L4LB_CONN_CONTROLLED);
}

/**
 * l4lb_conn_create() - create a connection for a flow
 * @flow: the flow, client to VIP
 * @target: real server and port, and the packet
 * @control: the template that chose the server, or NULL
 * @reason: set if there is no connection; otherwise it may be anything
 *
 * Context: RCU, BH off.
 * Return: the flow's connection, which is in the table; another CPU may have
 * created it.  NULL without memory, or when the table is full.
 */
struct l4lb_conn *l4lb_conn_create(const struct l4lb_flow *flow,
				   const struct l4lb_conn_target *target,
				   struct l4lb_conn *control,
				   enum l4lb_drop *reason)
{
	struct l4lb_conn_table *table = table_of(target);
	struct l4lb_server *server = target->server;
	const struct l4lb_pkt *first = target->first;
	const u8 proto = flow->proto;
	struct l4lb_conn *conn, *res;
	int flags;

	conn = conn_alloc(table, flow, target, false, reason);
	if (!conn)
		return NULL;
	set_tracked(conn);
	if (control)
		join(conn, control);
	if (l4lb_conn_begins_half_open(proto)) {
		/* No reader sees it yet. */
		atomic_set(&conn->flags, atomic_read(&conn->flags) |
			   BIT(L4LB_CONN_HALF_OPEN));
		atomic_inc(&table->n_half_open);
	}
	if (proto != IPPROTO_UDP) {
		if (first)
			l4lb_state_begin(conn, first);
	} else if (first) {
		conn->timeout = min(l4lb_state_udp_timeout(server), L4LB_CONN_TIMEOUT_MAX);
	}
	flags = atomic_read(&conn->flags);
	l4lb_server_bind(server, false, !(flags & BIT(L4LB_CONN_INACTIVE)));
	if (unlikely(flags & BIT(L4LB_CONN_LARGE)) && conn->uses & L4LB_USE_SHADOWED)
		res = insert_shadowed(table, conn, flow, control, reason);
	else
		res = inserted(table, conn, flow, l4lb_conn_insert_here(table, conn, flow),
			       reason);
	if (res == conn)
		l4lb_account_conn(server);
	else if (res && first)
		l4lb_state_packet(res, first, false);
	return res;
}

static struct l4lb_conn *template_make(struct l4lb_conn_table *table,
				       const struct l4lb_flow *key,
				       const struct l4lb_conn_target *target,
				       unsigned int timeout,
				       enum l4lb_drop *reason)
{
	struct l4lb_conn *conn = conn_alloc(table, key, target, true, reason);

	if (!conn)
		return NULL;
	conn->timeout = min(timeout, L4LB_CONN_TIMEOUT_MAX);
	refcount_set(&conn->refs, 1);
	l4lb_conn_set(conn, L4LB_CONN_TEMPLATE);
	l4lb_server_bind(target->server, true, false);
	if (unlikely(l4lb_conn_test(conn, L4LB_CONN_LARGE)))
		l4lb_ghost_choose(conn, target->flow);
	return conn;
}

/**
 * l4lb_conn_create_template() - create a persistence template
 * @key: the masked flow of the connections that the template is for
 * @target: their real server and port
 * @timeout: jiffies that it lives without connections
 * @reason: set if there is no connection; otherwise it may be anything
 *
 * Context: RCU, BH off.  Return: as l4lb_conn_create().
 */
struct l4lb_conn *l4lb_conn_create_template(const struct l4lb_flow *key,
					    const struct l4lb_conn_target *target,
					    unsigned int timeout,
					    enum l4lb_drop *reason)
{
	struct l4lb_conn_table *table = table_of(target);
	struct l4lb_conn *conn;

	conn = template_make(table, key, target, timeout, reason);
	return conn ? conn_insert(table, conn, key, reason) : NULL;
}

/* Gives @template, which is not in the table, the Call-ID of @key; or frees it. */
static bool set_call(struct l4lb_conn_table *table, struct l4lb_conn *template,
		     const struct l4lb_call_key *key, enum l4lb_drop *reason)
{
	struct l4lb_call *call = NULL;
	bool active;

	/* Its service may have lost the engine just now. */
	if (l4lb_conn_has_use(template, L4LB_USE_CALL))
		call = kmalloc(struct_size(call, id, key->len),
			       GFP_ATOMIC | __GFP_NOWARN);
	if (!call) {
		*reason = L4LB_DROP_MEMORY;
		conn_end(template, &active);
		l4lb_ghost_leave(template, active);
		conn_release(template, table, active);
		return false;
	}
	call->hash = key->hash;
	call->len = key->len;
	memcpy(call->id, key->id, key->len);
	template->call = call;
	return true;
}

/**
 * l4lb_conn_create_call() - create a template with a Call-ID
 * @key: what it is found by, after l4lb_conn_find_call()
 * @target: real server and port of its connections
 * @timeout: jiffies that it lives without connections
 * @reason: set if there is no connection; otherwise it may be anything
 *
 * Context: RCU, BH off.  Return: as l4lb_conn_create().
 */
struct l4lb_conn *l4lb_conn_create_call(const struct l4lb_call_key *key,
					const struct l4lb_conn_target *target,
					unsigned int timeout,
					enum l4lb_drop *reason)
{
	struct l4lb_conn_table *table = table_of(target);
	struct l4lb_conn *conn;

	conn = template_make(table, &key->flow, target, timeout, reason);
	if (!conn)
		return NULL;
	return set_call(table, conn, key, reason) ?
	       conn_insert(table, conn, &key->flow, reason) : NULL;
}

static struct l4lb_conn *copy_make(struct l4lb_conn_table *table,
				   const struct l4lb_flow *flow,
				   const struct l4lb_conn_target *target,
				   bool template, enum l4lb_drop *reason)
{
	struct l4lb_conn *conn;

	if (!l4lb_conn_table_admit_copy(table, template)) {
		*reason = L4LB_DROP_FULL;
		return NULL;
	}
	conn = conn_make(table, flow, target, template, reason);
	if (!conn)
		return NULL;
	l4lb_conn_set(conn, L4LB_CONN_SYNCED);
	if (l4lb_conn_test(conn, L4LB_CONN_LARGE))
		conn->uses = (conn->uses & ~(L4LB_USE_SHADOWED | L4LB_USE_LATENCY)) |
			     L4LB_USE_COPY;
	/* The local end that it has there is not known. */
	if (conn->method == L4LB_FULL_NAT)
		conn->method = IP_VS_CONN_F_MASQ;
	if (template) {
		refcount_set(&conn->refs, 1);
		conn->recorded = conn->last;
		l4lb_conn_set(conn, L4LB_CONN_TEMPLATE);
	}
	l4lb_server_bind(target->server, template, false);
	return conn;
}

/**
 * l4lb_conn_create_copy() - create what another director has
 * @flow: the flow, client to VIP; of a template: its key
 * @target: real server and port
 * @template: a template, not a connection
 * @reason: set if there is no connection; otherwise it may be anything
 *
 * It has no holders, no control, and its first state; nothing is evicted for it.
 *
 * Context: RCU, BH off.  Return: as l4lb_conn_create().
 */
struct l4lb_conn *l4lb_conn_create_copy(const struct l4lb_flow *flow,
					const struct l4lb_conn_target *target,
					bool template, enum l4lb_drop *reason)
{
	struct l4lb_conn_table *table = table_of(target);
	struct l4lb_conn *conn = copy_make(table, flow, target, template, reason);

	if (conn && !template)
		set_tracked(conn);
	return conn ? conn_insert(table, conn, flow, reason) : NULL;
}

/* The same for a template with a Call-ID, after l4lb_conn_find_call(). */
struct l4lb_conn *l4lb_conn_copy_call(const struct l4lb_call_key *key,
				      const struct l4lb_conn_target *target,
				      enum l4lb_drop *reason)
{
	struct l4lb_conn_table *table = table_of(target);
	struct l4lb_conn *conn;

	conn = copy_make(table, &key->flow, target, true, reason);
	return conn && set_call(table, conn, key, reason) ?
	       conn_insert(table, conn, &key->flow, reason) : NULL;
}

/* Any context with RCU. */
void l4lb_conn_kill(struct l4lb_conn *conn, enum l4lb_end why)
{
	struct l4lb_conn_table *table;
	bool active;

	if (!conn_end(conn, &active))
		return;
	table = rcu_dereference(l4lb_conn_net(conn)->conns);
	l4lb_conn_table_remove(table, conn);
	if (why != L4LB_END_UNSPEC)	/* not with their namespace */
		trace_l4lb_conn_end(conn, why);
	if (l4lb_conn_test(conn, L4LB_CONN_TRACKED))
		l4lb_ct_drop(conn);
	/* Its flow may begin anew by now: a record takes longer than all before. */
	if (unlikely(l4lb_conn_test(conn, L4LB_CONN_LARGE))) {
		if (READ_ONCE(conn->uses) & L4LB_USE_LOGGED)
			l4lb_conn_log(conn, why);
		if (READ_ONCE(conn->uses) & L4LB_USE_LATENCY)
			l4lb_latency_note_end(conn, why);
		l4lb_ghost_leave(conn, active);
	}
	conn_release(conn, table, active);
}

/* Move @conn between active and inactive.  l4lb_conn_lock() held. */
void l4lb_conn_set_active(struct l4lb_conn *conn, bool active)
{
	int flags;

	lockdep_assert_held(l4lb_conn_lock(conn));
	flags = atomic_read(&conn->flags);
	if (active == !(flags & BIT(L4LB_CONN_INACTIVE)) ||
	    flags & (BIT(L4LB_CONN_TEMPLATE) | BIT(L4LB_CONN_ONE_PACKET)))
		return;
	if (active)
		l4lb_conn_clear(conn, L4LB_CONN_INACTIVE);
	else
		l4lb_conn_set(conn, L4LB_CONN_INACTIVE);
	l4lb_server_active(conn->server, active);
	if (unlikely(flags & BIT(L4LB_CONN_LARGE)) && conn->ghost)
		l4lb_server_active(conn->ghost, active);
}

static void hold_again(struct l4lb_conn *control)
{
	atomic_inc(&control->n_holders);
	if (static_branch_unlikely(&l4lb_conn_watched))
		l4lb_conn_set(control, L4LB_CONN_DIRTY);
}

/* Set whether @conn keeps its template from expiring.  l4lb_conn_lock() held,
 * and @conn is not dead.
 */
void l4lb_conn_set_holds(struct l4lb_conn *conn, bool holds)
{
	lockdep_assert_held(l4lb_conn_lock(conn));
	if (!l4lb_conn_test(conn, L4LB_CONN_CONTROLLED))
		return;
	if (!holds)
		let_go(conn, jiffies);
	else if (!l4lb_conn_test_and_set(conn, L4LB_CONN_HOLDS))
		hold_again(conn->control);
}

/* From now on @conn is one of the connections of @template, if it has none; a
 * later state change lets it hold it.  RCU, BH off.
 */
void l4lb_conn_link(struct l4lb_conn *conn, struct l4lb_conn *template)
{
	spin_lock_bh(l4lb_conn_lock(conn));
	if (!l4lb_conn_test(conn, L4LB_CONN_DEAD) &&
	    !l4lb_conn_test(conn, L4LB_CONN_CONTROLLED) &&
	    refcount_inc_not_zero(&template->refs)) {
		conn->control = template;
		l4lb_conn_set(conn, L4LB_CONN_CONTROLLED);
	}
	spin_unlock_bh(l4lb_conn_lock(conn));
}

int __init l4lb_conn_init(void)
{
	unsigned int i;

	/* Not ARRAY_SIZE(): without SMP a lock has size 0. */
	for (i = 0; i < 1 << L4LB_CONN_LOCK_BITS; i++)
		spin_lock_init(&l4lb_conn_locks[i].lock);
	l4lb_conn_table_param();
	l4lb_conn_share_init();
	if (l4lb_conn_bucket_init())
		return -ENOMEM;
	if (l4lb_conn_memory_init())
		goto err_bucket_exit;
	return 0;

err_bucket_exit:
	l4lb_conn_bucket_exit();
	return -ENOMEM;
}

/* Call it after rcu_barrier(), so that no conn_free_rcu() is pending. */
void l4lb_conn_exit(void)
{
	l4lb_conn_memory_exit();
	l4lb_conn_bucket_exit();
}

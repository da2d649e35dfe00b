/* SPDX-License-Identifier: GPL-2.0 */
/* Which flows the fast path takes. */
#ifndef _L4LB_FAST_ADMIT_H
#define _L4LB_FAST_ADMIT_H

#include "entry/fast_back.h"

/* RCU, BH off from here on. */

/* While a client's packet passes the rest of the stack: L4LB_FAST_EXPECTED,
 * then the address of its skb once it has reached the end of POST_ROUTING.
 */
DECLARE_PER_CPU(const void *, l4lb_fast_request);
#define L4LB_FAST_EXPECTED	((const void *)1)

static inline void l4lb_fast_expect_request(void)
{
	this_cpu_write(l4lb_fast_request, L4LB_FAST_EXPECTED);
}

/**
 * struct l4lb_fast_reply - a reply that passes the rest of the stack
 * @skb: the reply, which may have been freed; or NULL
 * @conn: its connection; NULL: it is to be looked up again
 *
 * Set at FORWARD, taken at the end of POST_ROUTING, forgotten before another
 * packet is handled in a hook of ours: it may be at the same address.  @conn is
 * valid as long as @skb has a route without a reference, because that is bound to
 * the same RCU section; a packet that was queued meanwhile has a reference.
 */
struct l4lb_fast_reply {
	const struct sk_buff	*skb;
	struct l4lb_conn	*conn;
};

DECLARE_PER_CPU(struct l4lb_fast_reply, l4lb_fast_reply);

void l4lb_fast_expect_reply(const struct sk_buff *skb, struct l4lb_conn *conn);

static inline void l4lb_fast_forget_reply(void)
{
	this_cpu_write(l4lb_fast_reply.skb, NULL);
}

/* @number: of the device that a request came in by, or of a reply's way. */
void l4lb_fast_admit(struct l4lb_conn *conn, bool reply, u16 number);

/* The same for the request that has begun @conn, unless another CPU was first. */
static inline void l4lb_fast_admit_first(struct l4lb_conn *conn, u8 id)
{
	if (unlikely(READ_ONCE(conn->admitted))) {
		l4lb_fast_admit(conn, false, id);
		return;
	}
	WRITE_ONCE(conn->fast_in, id);
	smp_wmb();	/* its device before the term, as l4lb_fast_admit() does */
	WRITE_ONCE(conn->admitted, (u32)jiffies);
}

/* Admit the client's direction if @skb, which came in by @in, was sent. */
void l4lb_fast_admit_request(struct l4lb_conn *conn, const struct sk_buff *skb,
			     const struct net_device *in);

/* The last hook at POST_ROUTING. */
void l4lb_fast_leaving(struct sk_buff *skb, const struct nf_hook_state *state,
		       u8 af);

static inline bool l4lb_fast_term_over(const struct l4lb_net *ln,
				       const struct l4lb_conn *conn)
{
	u32 now = jiffies, age = now - READ_ONCE(conn->admitted);

	return age >= L4LB_FAST_TERM || age >= now - READ_ONCE(ln->fast_since);
}

/* Is the direction of clients admitted by the device with number @id? */
static inline bool l4lb_fast_admitted_in(const struct l4lb_conn *conn, u16 id)
{
	smp_rmb();	/* the term first; pairs with l4lb_fast_admit() */
	return READ_ONCE(conn->fast_in) == id;
}

/* For listings: is that direction of @conn on the fast path?  Single packets
 * may still need the stack, because of their own properties.  RCU.
 */
static inline bool l4lb_fast_taken(const struct l4lb_net *ln,
				   const struct l4lb_conn *conn, bool reply)
{
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	/* A template has a reference count in place of @admitted. */
	if (!svc || l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ||
	    l4lb_conn_test(conn, L4LB_CONN_TRACKED) ||
	    l4lb_fast_mode(ln, svc) == L4LB_FAST_PATH_OFF ||
	    l4lb_fast_term_over(ln, conn))
		return false;
	smp_rmb();	/* pairs with l4lb_fast_admit() */
	return reply ? (u32)atomic_read(&conn->flags) >> L4LB_CONN_BACK :
		       READ_ONCE(conn->fast_in);
}

#endif /* _L4LB_FAST_ADMIT_H */

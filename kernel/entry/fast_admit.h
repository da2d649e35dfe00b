/* SPDX-License-Identifier: GPL-2.0 */
/* Which flows the fast path takes. */
#ifndef _L4LB_FAST_ADMIT_H
#define _L4LB_FAST_ADMIT_H

#include "entry/fast.h"

/* Allocate a number; 0: there is none left. */
u8 l4lb_fast_id_get(struct l4lb_fast_ids *ids);
void l4lb_fast_id_put(struct l4lb_fast_ids *ids, u8 id);

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

/* @device: number of the device that the packet came in by. */
void l4lb_fast_admit(struct l4lb_conn *conn, bool reply, u8 device);

/* Admit the client's direction if @skb, which came in by @in, was sent. */
void l4lb_fast_admit_request(struct l4lb_conn *conn, const struct sk_buff *skb,
			     const struct net_device *in);

/* The last hook at POST_ROUTING. */
void l4lb_fast_leaving(struct sk_buff *skb, const struct nf_hook_state *state,
		       u8 af);

/* Where conn->flags has the device that a direction's packets come in by. */
static inline unsigned int l4lb_fast_device_shift(bool reply)
{
	return L4LB_CONN_DEVICES + 8 * reply;
}

static inline bool l4lb_fast_term_over(const struct l4lb_net *ln,
				       const struct l4lb_conn *conn)
{
	u32 now = jiffies, age = now - READ_ONCE(conn->admitted);

	return age >= L4LB_FAST_TERM || age >= now - READ_ONCE(ln->fast_since);
}

static inline bool l4lb_fast_admitted(const struct l4lb_net *ln,
				      const struct l4lb_conn *conn, bool reply,
				      u8 device)
{
	if (l4lb_fast_term_over(ln, conn))
		return false;
	smp_rmb();	/* pairs with l4lb_fast_admit() */
	return (u8)(atomic_read(&conn->flags) >>
		    l4lb_fast_device_shift(reply)) == device;
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
	return (u8)(atomic_read(&conn->flags) >> l4lb_fast_device_shift(reply));
}

/* The reply route with number @id; NULL if it is no longer valid. */
struct dst_entry *l4lb_fast_back_get(const struct l4lb_fast *fast, u8 id);
void l4lb_fast_back_flush(struct l4lb_fast *fast,
			  const struct net_device *dev);

#endif /* _L4LB_FAST_ADMIT_H */

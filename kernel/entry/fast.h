/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fast path: packets of established flows, forwarded at the ingress of
 * the device they came in by.
 *
 *	fast.c		the packets
 *	fast_admit.c	which flows: those whose packets the slow path has sent
 *	fast_device.c	which devices
 *	fast_new.c	first packets, for services that ask for it
 *	fast_routes.c	whose addresses those have
 *
 * A flow is admitted by direction, after one of its packets has been through
 * all of the stack, firewall and routing included, and for L4LB_FAST_TERM: so
 * whatever the administrator changes applies to it after that time at the
 * latest.  What concerns the director itself (services, real servers, routes,
 * neighbours, MTU) applies to the next packet.
 */
#ifndef _L4LB_FAST_H
#define _L4LB_FAST_H

#include <linux/netfilter.h>
#include <linux/xarray.h>

#include "conn/conn.h"
#include "l4lb.h"

struct l4lb_fast_routes;
struct l4lb_pkt;
struct l4lb_route;

#define L4LB_FAST_TERM	(8 * HZ)	/* jiffies an admission lasts */

/* Small numbers for devices and routes, of which a connection keeps two and
 * one; 0 is none.
 */
#define L4LB_FAST_IDS	256

/* Those in use, and since when (jiffies) the others are not: a number is not
 * given away again while a connection may have it from before.
 */
struct l4lb_fast_ids {
	DECLARE_BITMAP(used, L4LB_FAST_IDS);
	unsigned long	freed[L4LB_FAST_IDS];
	u8		last;
};

/* 0: there is none. */
u8 l4lb_fast_id_get(struct l4lb_fast_ids *ids);
void l4lb_fast_id_put(struct l4lb_fast_ids *ids, u8 id);

/**
 * struct l4lb_fast_device - a device whose packets are looked at
 * @ops: the hook
 * @ln: its namespace
 * @id: what connections call it
 * @rcu: to free it
 */
struct l4lb_fast_device {
	struct nf_hook_ops	ops;
	struct l4lb_net		*ln;
	u8			id;
	struct rcu_head		rcu;
};

/**
 * struct l4lb_fast_back - a route that the stack chose for replies
 * @dst: the route; a reference is held
 * @cookie: for dst_check()
 * @rcu: to free it
 */
struct l4lb_fast_back {
	struct dst_entry	*dst;
	u32			cookie;
	struct rcu_head		rcu;
};

/**
 * struct l4lb_fast - the fast path of a namespace
 * @back: routes of replies, by number (RCU)
 * @devices: struct l4lb_fast_device by ifindex (RCU; written under RTNL)
 * @device_ids: of @devices (RTNL)
 * @lock: serialises changes of @back
 * @back_ids: of @back (@lock)
 * @work: judges all devices again
 * @routes: see fast_routes.c; NULL: nobody has scheduled at ingress (@work)
 * @ln: the namespace
 */
struct l4lb_fast {
	struct l4lb_fast_back __rcu	*back[L4LB_FAST_IDS];
	struct xarray			devices;
	struct l4lb_fast_ids		device_ids;
	spinlock_t			lock;
	struct l4lb_fast_ids		back_ids;
	struct delayed_work		work;
	struct l4lb_fast_routes		*routes;
	struct l4lb_net			*ln;
};

/* With the first service; configuration mutex held. */
int l4lb_fast_create(struct l4lb_net *ln);
/* The namespace is going, its devices are still there.  Takes RTNL. */
void l4lb_fast_stop(struct l4lb_net *ln);
/* Packets are gone, too. */
void l4lb_fast_destroy(struct l4lb_net *ln);
/* Services, their policy or the sysctl have changed: which devices are looked
 * at may, too.  They follow in a moment.  Any lock may be held but RTNL.
 */
void l4lb_fast_changed(struct l4lb_net *ln);

int l4lb_fast_init(void);
void l4lb_fast_exit(void);

struct l4lb_conn *l4lb_fast_begin(struct sk_buff *skb,
				  const struct l4lb_pkt *pkt,
				  const struct l4lb_fast_device *d,
				  unsigned int len);

/* fast_routes.c */
void l4lb_fast_routes_start(struct l4lb_fast *fast);
void l4lb_fast_routes_stop(struct l4lb_fast *fast);
void l4lb_fast_routes_free(struct l4lb_fast *fast);
bool l4lb_fast_source_ok(const struct l4lb_fast *fast, __be32 addr);
bool l4lb_fast_generation(const struct l4lb_fast *fast, u32 *generation);

unsigned int l4lb_fast_packet(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state);

/* What the service of @conn has, or its namespace: L4LB_FAST_PATH_OFF to
 * _NEW.
 */
static inline u32 l4lb_fast_mode(const struct l4lb_net *ln,
				 const struct l4lb_service *svc)
{
	u32 mode = READ_ONCE(svc->policy.fast_path);

	return mode != L4LB_FAST_PATH_DEFAULT ? mode :
	       READ_ONCE(ln->sysctl.fast_path) + L4LB_FAST_PATH_OFF;
}

/* May a first packet be scheduled at ingress? */
static inline bool l4lb_fast_has_new(const struct l4lb_net *ln)
{
	return READ_ONCE(ln->sysctl.fast_path) == 2 ||
	       READ_ONCE(ln->n_fast_path);
}

/* A setting that applies from the next packet: that goes through the stack. */
static inline void l4lb_fast_renew(struct l4lb_net *ln)
{
	WRITE_ONCE(ln->fast_since, (u32)jiffies);
}

/* ---- admission: RCU, BH off ---- */

/* While a client's packet is on its way through the rest of the stack:
 * L4LB_FAST_EXPECTED, then its address once it has left.
 */
DECLARE_PER_CPU(const void *, l4lb_fast_request);
#define L4LB_FAST_EXPECTED	((const void *)1)

static inline void l4lb_fast_expect_request(void)
{
	this_cpu_write(l4lb_fast_request, L4LB_FAST_EXPECTED);
}

/* @device: by which it came in. */
void l4lb_fast_admit(struct l4lb_conn *conn, bool reply, u8 device);

/* That packet, which came in by @in, was @skb.  What has become of it? */
void l4lb_fast_admit_request(struct l4lb_conn *conn, const struct sk_buff *skb,
			     const struct net_device *in);

/* POST_ROUTING, after everybody else. */
void l4lb_fast_leaving(struct sk_buff *skb, const struct nf_hook_state *state,
		       u8 af);

/* By which device, by number, a direction's packets may come. */
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

/* For listings: is that direction of @conn on the fast path?  A packet's own
 * properties may yet send it through the stack.  RCU.
 */
static inline bool l4lb_fast_taken(const struct l4lb_net *ln,
				   const struct l4lb_conn *conn, bool reply)
{
	const struct l4lb_service *svc = rcu_dereference(conn->real->svc);

	/* A template has no term. */
	if (!svc || l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ||
	    l4lb_conn_test(conn, L4LB_CONN_TRACKED) ||
	    l4lb_fast_mode(ln, svc) == L4LB_FAST_PATH_OFF ||
	    l4lb_fast_term_over(ln, conn))
		return false;
	smp_rmb();	/* pairs with l4lb_fast_admit() */
	return (u8)(atomic_read(&conn->flags) >> l4lb_fast_device_shift(reply));
}

/* The route for replies of that number; NULL if it no longer holds. */
struct dst_entry *l4lb_fast_back_get(const struct l4lb_fast *fast, u8 id);
void l4lb_fast_back_flush(struct l4lb_fast *fast,
			  const struct net_device *dev);

#endif /* _L4LB_FAST_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fast path: packets of established flows, forwarded at the ingress of
 * the device they came in by.
 *
 *	fast_packet.c	the packets
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

#endif /* _L4LB_FAST_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fast path: packets of established flows, forwarded at the ingress of
 * the device they came in by.
 *
 *	fast_packet.c	handles a packet
 *	fast_admit.c	which flows: those that the slow path has forwarded
 *	fast_back.c	the routes of replies
 *	fast_device.c	which devices
 *	fast_new.c	first packets of flows, where nobody looks or the service asks
 *	fast_routes.c	address checks for first packets
 *
 * Each direction of a flow is admitted for L4LB_FAST_TERM, after one of its
 * packets has passed the whole stack, firewall and routing included, or has
 * begun it here.  So any change by the administrator takes effect after that
 * time at the latest.  Changes of the director itself (services, real servers,
 * routes, neighbours, MTU) take effect with the next packet.
 */
#ifndef _L4LB_FAST_H
#define _L4LB_FAST_H

#include <linux/hashtable.h>
#include <linux/netfilter.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>

#include "conn/conn.h"
#include "l4lb.h"

struct l4lb_fast_routes;

#define L4LB_FAST_TERM	(8 * HZ)	/* jiffies an admission lasts */

/* A number is not reused so long (jiffies) after its end, because connections may
 * still store it.
 */
#define L4LB_FAST_REST	(L4LB_FAST_TERM + HZ)

/* Devices that requests come in by have small numbers, because a connection has
 * room for one byte.  0 is none.
 */
#define L4LB_FAST_IDS	256

/**
 * struct l4lb_fast_id - a number of devices
 * @device: has the number now, or NULL
 * @used: when it was last used, in jiffies, accurate to a second
 * @ever: has it been used at all?
 */
struct l4lb_fast_id {
	struct l4lb_fast_device	*device;
	unsigned long		used;
	bool			ever;
};

/* Devices that are found without a search: one for each value of as many low bits of
 * an ifindex.
 */
#define L4LB_FAST_NEAR	64

/* Of the number of a way back: see fast_back.h. */
#define L4LB_FAST_BACK_BITS	14
#define L4LB_FAST_PAGE_BITS	8

struct l4lb_fast_page {
	struct l4lb_fast_back __rcu *back[1 << L4LB_FAST_PAGE_BITS];
};

/**
 * struct l4lb_fast - the fast path of a namespace
 * @pages: ways back by number; a page stays once it is there (@lock)
 * @ways: ways back that are valid, by route (RCU; written with @lock)
 * @resting: ways back that have ended, the oldest first (@lock)
 * @last_back: the highest number that a way back has had (@lock)
 * @swept: bucket of @ways that was searched last for routes that ended (@lock)
 * @ids: numbers of @devices (@lock)
 * @full: until then, in jiffies, no number of devices is looked for
 * @lock: serialises changes of ways back and of numbers
 * @devices: struct l4lb_fast_device by ifindex (RCU; written under RTNL)
 * @near: some of them, by the low bits of their ifindex (likewise)
 * @serial: the last device's (RTNL)
 * @work: attaches to devices, or detaches from them
 * @stop: follows routes no longer
 * @routes: see fast_routes.c; NULL until there are services (@work)
 * @ln: the namespace
 */
struct l4lb_fast {
	struct l4lb_fast_page	*pages[1 << (L4LB_FAST_BACK_BITS -
					     L4LB_FAST_PAGE_BITS)];
	DECLARE_HASHTABLE(ways, L4LB_FAST_BACK_BITS - 4);
	struct list_head	resting;
	unsigned int		last_back;
	unsigned int		swept;
	struct l4lb_fast_id	ids[L4LB_FAST_IDS];
	unsigned long		full;
	spinlock_t		lock;
	struct xarray		devices;
	struct l4lb_fast_device __rcu *near[L4LB_FAST_NEAR];
	u32			serial;
	struct delayed_work	work;
	struct work_struct	stop;
	struct l4lb_fast_routes	*routes;
	struct l4lb_net		*ln;
};

/* The mode of @svc, or by default of @ln: L4LB_FAST_PATH_OFF to _NEW. */
static inline u32 l4lb_fast_mode(const struct l4lb_net *ln,
				 const struct l4lb_service *svc)
{
	u32 mode = READ_ONCE(svc->policy.fast_path);

	return mode != L4LB_FAST_PATH_DEFAULT ? mode :
	       READ_ONCE(ln->sysctl.fast_path) + L4LB_FAST_PATH_OFF;
}

/* Does the namespace or a service ask for first packets at ingress, or in XDP? */
static inline bool l4lb_fast_has_new(const struct l4lb_net *ln)
{
	return READ_ONCE(ln->sysctl.fast_path) == 2 ||
	       READ_ONCE(ln->n_fast_new);
}

/* Has the namespace any IPsec policy?  Then its packets take the stack. */
static inline bool l4lb_fast_has_ipsec(const struct net *net)
{
#ifdef CONFIG_XFRM
	return net->xfrm.policy_count[XFRM_POLICY_OUT] |
	       net->xfrm.policy_count[XFRM_POLICY_FWD] |
	       net->xfrm.policy_count[XFRM_POLICY_IN];
#else
	return false;
#endif
}

/* A setting has changed: the stack must see the next packet of each flow. */
static inline void l4lb_fast_renew(struct l4lb_net *ln)
{
	WRITE_ONCE(ln->fast_since, (u32)jiffies);
}

#endif /* _L4LB_FAST_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Address checks for first packets. */
#ifndef _L4LB_FAST_ROUTES_H
#define _L4LB_FAST_ROUTES_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/notifier.h>

#include "entry/fast.h"

#define L4LB_FAST_LOCAL_BITS	16
#define L4LB_FAST_LOCAL_NETS	8

/**
 * struct l4lb_fast_routes - addresses of a namespace, from its routes
 * @nb: notifier of route changes; IPv4 calls it one at a time
 * @local: single addresses that no packet from outside has as its source, by
 *	their lower bits
 * @n_nets: number of networks of such addresses; more than %L4LB_FAST_LOCAL_NETS: too many
 * @nets: the first %L4LB_FAST_LOCAL_NETS of these networks
 * @changed: jiffies of the last change for IPv6
 * @generation: number of changes for IPv6
 */
struct l4lb_fast_routes {
	struct notifier_block	nb;
	DECLARE_BITMAP(local, 1 << L4LB_FAST_LOCAL_BITS);
	unsigned int		n_nets;
	struct {
		u32		addr, mask;
	} nets[L4LB_FAST_LOCAL_NETS];
	unsigned long		changed;
	atomic_t		generation;
};

static inline unsigned int l4lb_fast_local_bit(u32 addr)
{
	return addr & GENMASK(L4LB_FAST_LOCAL_BITS - 1, 0);
}

/* Not unicast addresses: first byte 0, 127 or 224 to 255. */
static inline bool l4lb_fast_is_special(u32 addr)
{
	u8 first = addr >> 24;

	return (u8)(first - 1) >= 223 || first == 127;
}

static inline bool l4lb_fast_in_nets(const struct l4lb_fast_routes *routes, u32 addr)
{
	/* Pairs with note_net(). */
	unsigned int i, n = smp_load_acquire(&routes->n_nets);

	for (i = 0; i < n && i < L4LB_FAST_LOCAL_NETS; i++)
		if ((addr & routes->nets[i].mask) == routes->nets[i].addr)
			return true;
	return n > L4LB_FAST_LOCAL_NETS;
}

void l4lb_fast_routes_start(struct l4lb_fast *fast);
void l4lb_fast_routes_stop(struct l4lb_fast *fast);
void l4lb_fast_routes_free(struct l4lb_fast *fast);
bool l4lb_fast_source_look_up(const struct l4lb_fast *fast, __be32 addr);
bool l4lb_fast_generation(const struct l4lb_fast *fast, u32 *generation);

/**
 * l4lb_fast_source_ok() - may a packet from outside have this source?
 * @fast: fast path of the namespace
 * @addr: the source, IPv4
 *
 * Not if it is an address of this host, multicast, broadcast or zero.
 * Context: softirq, RCU.
 */
static __always_inline bool l4lb_fast_source_ok(const struct l4lb_fast *fast, __be32 addr)
{
	const struct l4lb_fast_routes *routes = READ_ONCE(fast->routes);
	u32 host = ntohl(addr);

	return likely(routes && !test_bit(l4lb_fast_local_bit(host), routes->local) &&
		      !l4lb_fast_is_special(host) && !l4lb_fast_in_nets(routes, host)) ||
	       l4lb_fast_source_look_up(fast, addr);
}

#endif /* _L4LB_FAST_ROUTES_H */

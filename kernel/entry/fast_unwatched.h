/* SPDX-License-Identifier: GPL-2.0 */
/* First packets that nobody could refuse. */
#ifndef _L4LB_FAST_UNWATCHED_H
#define _L4LB_FAST_UNWATCHED_H

#include <linux/inetdevice.h>
#include <net/ip6_fib.h>

#include "entry/fast_device.h"
#include "forward/others.h"
#include "service/route.h"

/* May routing refuse a packet to a local address for what it is, or for its source? */
static inline bool
l4lb_fast_routing_may_refuse(const struct l4lb_fast_device *d, u8 af)
{
	struct net *net = d->ln->net;
	struct in_device *in;

	if (l4lb_net_has_rules(net, af))
		return true;
	if (af == AF_INET6)
		return fib6_routes_require_src(net);
	in = __in_dev_get_rcu(d->ops.dev);
	return !in || IN_DEV_RPFILTER(in);
}

/**
 * l4lb_fast_unwatched() - would the stack surely let the first packet of a flow pass?
 * @d: the device it came in by
 * @af: its family
 *
 * So it is if nobody else has a hook on its way, no rule of routing was ever
 * changed, no route depends on the source, and the path back is not checked.
 * (A route to the VIP itself by TOS, or with a BPF program, is not looked for.)
 * Context: softirq, RCU.
 */
static inline bool l4lb_fast_unwatched(const struct l4lb_fast_device *d, u8 af)
{
	const struct l4lb_net *ln = d->ln;

	return !l4lb_others_look(ln->net, af, NF_INET_LOCAL_IN) &&
	       !l4lb_others_look(ln->net, af, NF_INET_PRE_ROUTING) &&
	       !l4lb_others_look(ln->net, af, NF_INET_LOCAL_OUT) &&
	       !l4lb_others_look(ln->net, af, NF_INET_POST_ROUTING) &&
	       !l4lb_fast_routing_may_refuse(d, af) &&
	       /* A tunnel of the other family has other hooks. */
	       !READ_ONCE(ln->n_mixed);
}

#endif /* _L4LB_FAST_UNWATCHED_H */

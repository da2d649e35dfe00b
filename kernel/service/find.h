/* SPDX-License-Identifier: GPL-2.0 */
/* The service of a packet, inline. */
#ifndef _L4LB_SERVICE_FIND_H
#define _L4LB_SERVICE_FIND_H

#include <linux/hash.h>
#include <linux/log2.h>
#include <net/ipv6.h>

#include "base/net.h"
#include "service/service.h"

/* Where a service would be among the near ones.  An IPv4 address is in the first word, and
 * the others are 0.
 */
static __always_inline struct l4lb_service __rcu **
l4lb_service_place(struct l4lb_net *ln, const union nf_inet_addr *addr, u32 fwmark,
		   u8 protocol, __be16 port)
{
	u32 hash = (addr->all[0] ^ addr->all[3]) * GOLDEN_RATIO_32 +
		   ((u32)protocol << 16 ^ (__force u16)port ^ fwmark) * 0x85ebca6b;

	return &ln->svc_near[hash >> (32 - ilog2(ARRAY_SIZE(ln->svc_near)))];
}

/* A batch adds its services to the table before it is sure to succeed.  Packets
 * must ignore them until IP_VS_SVC_F_HASHED is set.
 */
static __always_inline bool l4lb_service_is_live(const struct l4lb_service *svc)
{
	/* Pairs with l4lb_service_apply(): read the flags, then the pool. */
	return smp_load_acquire(&svc->flags) & IP_VS_SVC_F_HASHED;
}

/* The service of exactly the packet's destination, if it is among the near ones. */
static __always_inline struct l4lb_service *
l4lb_service_near(struct l4lb_net *ln, const struct l4lb_flow *flow)
{
	struct l4lb_service *svc =
		rcu_dereference(*l4lb_service_place(ln, &flow->daddr, 0, flow->proto,
						    flow->dport));

	return likely(svc && svc->key.port == flow->dport &&
		      svc->key.protocol == flow->proto && svc->key.af == flow->af &&
		      !svc->key.fwmark &&
		      ipv6_addr_equal(&svc->key.addr.in6, &flow->daddr.in6) &&
		      l4lb_service_is_live(svc)) ? svc : NULL;
}

/**
 * l4lb_service_lookup() - the service a packet is for
 * @ln: namespace
 * @fwmark: of the packet; takes precedence over its addresses
 * @flow: of the packet, client to VIP
 *
 * Context: RCU.  Return: the service, valid in the caller's RCU section, or NULL.
 */
static __always_inline struct l4lb_service *
l4lb_service_lookup(struct l4lb_net *ln, u32 fwmark, const struct l4lb_flow *flow)
{
	struct l4lb_service *svc;

	if (unlikely(fwmark && READ_ONCE(ln->n_fwmark))) {
		svc = l4lb_service_of_mark(ln, fwmark, flow->af);
		if (svc)
			return svc;
	}
	svc = l4lb_service_near(ln, flow);
	return likely(svc) ? svc : l4lb_service_far(ln, flow);
}

#endif /* _L4LB_SERVICE_FIND_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's routes, asked mostly without a call. */
#ifndef _L4LB_DST_H
#define _L4LB_DST_H

#include <net/dst.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/route.h>

/* dst_check(), without calls for IPv4. */
static __always_inline bool l4lb_dst_valid(struct dst_entry *dst, u32 cookie)
{
	if (dst->ops->family == AF_INET6)
		return dst_check(dst, cookie);
	return READ_ONCE(dst->obsolete) == DST_OBSOLETE_FORCE_CHK &&
	       dst_rtable(dst)->rt_genid ==
	       rt_genid_ipv4(dev_net(dst->dev));
}

/* dst_mtu(), mostly without a call. */
static __always_inline u32 l4lb_dst_mtu(const struct dst_entry *dst)
{
	if (likely(dst->ops->family == AF_INET && !dst_rtable(dst)->rt_pmtu &&
		   !dst_metric_raw(dst, RTAX_MTU) && !dst_metric_locked(dst, RTAX_MTU) &&
		   !dst->lwtstate))
		return min_t(u32, READ_ONCE(dst->dev->mtu), IP_MAX_MTU);
	return dst_mtu(dst);
}

/* Does a packet of @len bytes fit?  Short ones always do. */
static __always_inline bool l4lb_dst_fits(const struct dst_entry *dst,
					  unsigned int len)
{
	unsigned int least = dst->ops->family == AF_INET ? IPV4_MIN_MTU :
							   IPV6_MIN_MTU;

	return len <= least || len <= l4lb_dst_mtu(dst);
}

#endif /* _L4LB_DST_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses in tracepoints: 16 bytes, IPv4 as IPv6 has it (::ffff:192.0.2.1), so that
 * a reader needs no second field.
 */
#ifndef _L4LB_TRACE_ADDR_H
#define _L4LB_TRACE_ADDR_H

#include <linux/netfilter.h>
#include <linux/string.h>
#include <net/ipv6.h>

enum { L4LB_TRACE_ADDR_LEN = 16 };

static inline void l4lb_trace_addr(u8 *to, u16 af,
				   const union nf_inet_addr *from)
{
	struct in6_addr addr = from->in6;

	if (af == AF_INET)
		ipv6_addr_set_v4mapped(from->ip, &addr);
	memcpy(to, &addr, L4LB_TRACE_ADDR_LEN);
}

#endif /* _L4LB_TRACE_ADDR_H */

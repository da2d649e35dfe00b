/* SPDX-License-Identifier: GPL-2.0 */
/* Checking packets before they are rewritten or acted upon. */
#ifndef _L4LB_CHECKSUM_H
#define _L4LB_CHECKSUM_H

#include <net/ip.h>

#include "base/flow.h"
#include "base/net.h"

/* Is the checksum of the ICMP error right?  If not, a drop was counted. */
bool l4lb_icmp_checksum_ok(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   const struct l4lb_net *ln);

/* The same for a packet of TCP, UDP or SCTP that has no connection. */
bool l4lb_checksum_ok(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		      const struct l4lb_net *ln);

/* The stack may have filled in a Record Route or Timestamp option and left the
 * header's checksum to be updated when the packet is sent on.  The checks and
 * rewrites here need it now.
 */
static inline void l4lb_settle_options(struct sk_buff *skb)
{
	if (likely(!IPCB(skb)->opt.is_changed) ||
	    skb_ensure_writable(skb, ip_hdrlen(skb)))
		return;
	IPCB(skb)->opt.is_changed = 0;
	ip_send_check(ip_hdr(skb));
}

#endif /* _L4LB_CHECKSUM_H */

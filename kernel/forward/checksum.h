/* SPDX-License-Identifier: GPL-2.0 */
/* Checking ICMP errors before they are rewritten or acted upon. */
#ifndef _L4LB_CHECKSUM_H
#define _L4LB_CHECKSUM_H

#include "base/flow.h"
#include "base/net.h"

/* Is the checksum of the ICMP error right?  If not, a drop was counted. */
bool l4lb_icmp_checksum_ok(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   const struct l4lb_net *ln);

#endif /* _L4LB_CHECKSUM_H */

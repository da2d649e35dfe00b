// SPDX-License-Identifier: GPL-2.0
/* Checking ICMP errors before they are rewritten or acted upon. */
#include "forward/checksum.h"

#include "base/drop.h"

/* A rewrite computes a new ICMP checksum, which would hide a wrong one. */
bool l4lb_icmp_checksum_ok(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   const struct l4lb_net *ln)
{
	if (pkt->hook == NF_INET_LOCAL_OUT ||
	    !nf_checksum(skb, pkt->hook, pkt->l4, pkt->flow.proto,
			 pkt->flow.af))
		return true;
	l4lb_drop(ln, L4LB_DROP_CHECKSUM);
	return false;
}

// SPDX-License-Identifier: GPL-2.0
/* Checksums of what is not forwarded unseen. */
#include "forward/checksum.h"

/* What is rewritten gets a new checksum, so a wrong one must end here. */
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

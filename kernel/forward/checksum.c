// SPDX-License-Identifier: GPL-2.0
/* Checking packets before they create connections, and ICMP errors before they
 * are rewritten or acted upon.
 */
#include "forward/checksum.h"

#include <net/sctp/checksum.h>

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

/* A CRC that is still to be computed or was verified by the device is right. */
static bool crc_ok(struct sk_buff *skb, const struct l4lb_pkt *pkt)
{
	const struct sctphdr *sctp;

	if (skb->ip_summed == CHECKSUM_PARTIAL ||
	    skb->ip_summed == CHECKSUM_UNNECESSARY)
		return true;
	/* sctp_compute_cksum() sets the header's field to 0 for a while. */
	if (skb_ensure_writable(skb, pkt->l4 + sizeof(*sctp)))
		return false;
	sctp = (void *)skb->data + pkt->l4;
	return sctp->checksum == sctp_compute_cksum(skb, pkt->l4);
}

/* Broken packets must not create connections; the local stack drops them. */
bool l4lb_checksum_ok(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		      const struct l4lb_net *ln)
{
	struct udphdr _udp __l4lb_unset;
	struct udphdr *udp;

	if (pkt->hook == NF_INET_LOCAL_OUT)
		return true;
	if (pkt->flow.proto == IPPROTO_UDP && pkt->flow.af == AF_INET) {
		udp = skb_header_pointer(skb, pkt->l4, sizeof(_udp), &_udp);
		if (udp && !udp->check)
			return true;
	}
	if (pkt->flow.proto == IPPROTO_SCTP ? crc_ok(skb, pkt) :
	    !nf_checksum(skb, pkt->hook, pkt->l4, pkt->flow.proto,
			 pkt->flow.af))
		return true;
	l4lb_drop(ln, L4LB_DROP_CHECKSUM);
	return false;
}

/* SPDX-License-Identifier: GPL-2.0 */
/* The headers of a packet on the fast path, wherever it is met.  What is unusual is
 * refused, and left to the stack.
 */
#ifndef _L4LB_FAST_HEADERS_H
#define _L4LB_FAST_HEADERS_H

#include <net/ip.h>
#include <net/ipv6.h>

#include "base/flow.h"
#include "base/stats.h"

/**
 * struct l4lb_fast_view - a packet from its network header on
 * @data: its beginning
 * @linear: bytes at @data
 * @all: bytes of the packet, padding included
 */
struct l4lb_fast_view {
	const void	*data;
	unsigned int	linear;
	unsigned int	all;
};

static __always_inline bool
l4lb_fast_read_ipv4(const struct l4lb_fast_view *v, struct l4lb_pkt *pkt,
		    unsigned int *len)
{
	const struct iphdr *iph = v->data;

	if (v->linear < sizeof(*iph) || iph->version != 4 ||
	    iph->ihl != sizeof(*iph) / 4 || ip_is_fragment(iph) ||
	    iph->ttl <= 1)
		return false;
	*len = ntohs(iph->tot_len);
	pkt->l4 = sizeof(*iph);
	pkt->flow.saddr = (union nf_inet_addr){ .ip6 = { iph->saddr } };
	pkt->flow.daddr = (union nf_inet_addr){ .ip6 = { iph->daddr } };
	pkt->flow.proto = iph->protocol;
	return *len <= v->all;
}

static __always_inline bool
l4lb_fast_read_ipv6(const struct l4lb_fast_view *v, struct l4lb_pkt *pkt,
		    unsigned int *len)
{
	const struct ipv6hdr *iph = v->data;

	if (v->linear < sizeof(*iph) || iph->version != 6 ||
	    iph->hop_limit <= 1)
		return false;
	*len = sizeof(*iph) + ntohs(iph->payload_len);
	pkt->l4 = sizeof(*iph);
	pkt->flow.saddr.in6 = iph->saddr;
	pkt->flow.daddr.in6 = iph->daddr;
	pkt->flow.proto = iph->nexthdr;
	return *len <= v->all;
}

static __always_inline enum l4lb_fast_count
l4lb_fast_read_l4(const struct l4lb_fast_view *v, struct l4lb_pkt *pkt,
		  unsigned int len)
{
	const struct tcphdr *tcp = v->data + pkt->l4;
	unsigned int need;

	if (pkt->flow.proto == IPPROTO_TCP)
		need = pkt->l4 + sizeof(struct tcphdr);
	else if (pkt->flow.proto == IPPROTO_UDP)
		need = pkt->l4 + sizeof(struct udphdr);
	else
		return L4LB_SLOW_PROTOCOL;
	if (len < need || v->linear < need)
		return L4LB_SLOW_HEADER;
	pkt->flow.sport = tcp->source;
	pkt->flow.dport = tcp->dest;
	pkt->tcp = 0;
	if (pkt->flow.proto == IPPROTO_TCP) {
		if (tcp->doff < 5)
			return L4LB_SLOW_HEADER;
		pkt->tcp = tcp_flag_byte(tcp);
	}
	return L4LB_FAST_SENT;
}

/* All headers of a packet of family @af.  *@len gets the length of the IP packet;
 * padding may follow it.
 */
static __always_inline enum l4lb_fast_count
l4lb_fast_read_headers(const struct l4lb_fast_view *v, u8 af,
		       struct l4lb_pkt *pkt, unsigned int *len)
{
	pkt->flow.af = af;
	pkt->chunk = 0;
	pkt->hook = NF_INET_LOCAL_IN;
	if (unlikely(af == AF_INET ? !l4lb_fast_read_ipv4(v, pkt, len) :
				     !l4lb_fast_read_ipv6(v, pkt, len)))
		return L4LB_SLOW_HEADER;
	return l4lb_fast_read_l4(v, pkt, *len);
}

#endif /* _L4LB_FAST_HEADERS_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * skb -> struct l4lb_pkt: header parser of all hooks (but not the fast path).
 *
 * skb->data is at the network header in every hook that calls it.  Nothing
 * here trusts a length field, and nothing keeps a pointer into the packet.
 */
#ifndef _L4LB_PARSE_H
#define _L4LB_PARSE_H

#include "base/flow.h"

static __always_inline enum l4lb_parse
l4lb_parse_ipv4(const struct sk_buff *skb, unsigned int off, bool quoted,
		struct l4lb_pkt *pkt)
{
	const struct iphdr *iph;
	struct iphdr _iph __l4lb_unset;

	iph = skb_header_pointer(skb, off, sizeof(_iph), &_iph);
	if (!iph || iph->version != 4 || iph->ihl < 5)
		return L4LB_PARSE_BAD;
	pkt->l4 = off + iph->ihl * 4;
	pkt->flow.proto = iph->protocol;
	pkt->flow.saddr = (union nf_inet_addr){ .ip6 = { iph->saddr } };
	pkt->flow.daddr = (union nf_inet_addr){ .ip6 = { iph->daddr } };
	/* The first fragment has the ports: enough for a quoted packet. */
	if (iph->frag_off & htons(quoted ? IP_OFFSET : IP_MF | IP_OFFSET))
		return L4LB_PARSE_FRAGMENT;
	return L4LB_PARSE_OK;
}

static __always_inline enum l4lb_parse
l4lb_parse_ipv6(const struct sk_buff *skb, unsigned int off,
		struct l4lb_pkt *pkt)
{
	const struct ipv6hdr *iph;
	struct ipv6hdr _iph __l4lb_unset;
	__be16 frag = 0;
	int l4;
	u8 next;

	iph = skb_header_pointer(skb, off, sizeof(_iph), &_iph);
	if (!iph || iph->version != 6)
		return L4LB_PARSE_BAD;
	pkt->flow.saddr.in6 = iph->saddr;
	pkt->flow.daddr.in6 = iph->daddr;
	next = iph->nexthdr;
	l4 = ipv6_skip_exthdr(skb, off + sizeof(_iph), &next, &frag);
	/* The stack sees AH as an extension header.  Here it is the protocol:
	 * the headers behind it are authenticated and must not be rewritten.
	 */
	if (unlikely(l4 != off + sizeof(_iph)) &&
	    ipv6_find_hdr(skb, &off, NEXTHDR_AUTH, NULL, NULL) ==
	    NEXTHDR_AUTH) {
		pkt->l4 = off;
		pkt->flow.proto = NEXTHDR_AUTH;
		return L4LB_PARSE_OK;
	}
	if (l4 < 0)
		return L4LB_PARSE_BAD;
	pkt->l4 = l4;
	pkt->flow.proto = next;
	/* Only the first fragment has an L4 header.  Reassembly leaves a first
	 * fragment only inside an ICMP error, where its ports are usable.
	 */
	if (frag & htons(IP6_OFFSET))
		return L4LB_PARSE_FRAGMENT;
	return L4LB_PARSE_OK;
}

/* Takes the packet's first chunk, but an ABORT right behind a COOKIE ECHO or
 * COOKIE ACK takes precedence.
 */
static __always_inline enum l4lb_parse
l4lb_parse_chunk(const struct sk_buff *skb, struct l4lb_pkt *pkt)
{
	unsigned int off = pkt->l4 + sizeof(struct sctphdr);
	const struct sctp_chunkhdr *chunk;
	struct sctp_chunkhdr _chunk;

	chunk = skb_header_pointer(skb, off, sizeof(_chunk), &_chunk);
	if (!chunk)
		return L4LB_PARSE_BAD;
	pkt->chunk = chunk->type;
	if (pkt->chunk != SCTP_CID_COOKIE_ECHO &&
	    pkt->chunk != SCTP_CID_COOKIE_ACK)
		return L4LB_PARSE_OK;
	off += ALIGN(ntohs(chunk->length), 4);
	chunk = skb_header_pointer(skb, off, sizeof(_chunk), &_chunk);
	if (chunk && chunk->type == SCTP_CID_ABORT)
		pkt->chunk = SCTP_CID_ABORT;
	return L4LB_PARSE_OK;
}

/* Ports, TCP flags and SCTP chunk.  @quoted: the packet is quoted by an ICMP
 * error, which may have only the first eight bytes of the L4 header.
 */
static __always_inline enum l4lb_parse
l4lb_parse_l4(const struct sk_buff *skb, struct l4lb_pkt *pkt, bool quoted)
{
	union {
		struct tcphdr	tcp;
		struct udphdr	udp;
		struct sctphdr	sctp;
		__be16		ports[2];
	} _l4 __l4lb_unset;
	const __be16 *ports;
	unsigned int len;

	switch (pkt->flow.proto) {
	case IPPROTO_TCP:
		len = quoted ? sizeof(_l4.ports) : sizeof(_l4.tcp);
		break;
	case IPPROTO_UDP:
		len = quoted ? sizeof(_l4.ports) : sizeof(_l4.udp);
		break;
	case IPPROTO_SCTP:
		len = quoted ? sizeof(_l4.ports) : sizeof(_l4.sctp);
		break;
	default:
		return L4LB_PARSE_OTHER;
	}
	ports = skb_header_pointer(skb, pkt->l4, len, &_l4);
	if (!ports)
		return L4LB_PARSE_BAD;
	pkt->flow.sport = ports[0];
	pkt->flow.dport = ports[1];
	if (!quoted && pkt->flow.proto == IPPROTO_TCP) {
		const struct tcphdr *tcp = (const struct tcphdr *)ports;

		if (tcp->doff < 5)
			return L4LB_PARSE_BAD;
		pkt->tcp = tcp_flag_byte(tcp);
	}
	if (!quoted && pkt->flow.proto == IPPROTO_SCTP)
		return l4lb_parse_chunk(skb, pkt);
	return L4LB_PARSE_OK;
}

/* @af is a constant in every caller: one copy of the code per family. */
static __always_inline enum l4lb_parse
l4lb_parse_packet(const struct sk_buff *skb, u8 af, unsigned int off,
		  bool quoted, struct l4lb_pkt *pkt)
{
	enum l4lb_parse res;

	pkt->flow.af = af;
	pkt->flow.sport = 0;
	pkt->flow.dport = 0;
	pkt->flow.hash = 0;
	pkt->tcp = 0;
	pkt->chunk = 0;
	if (af == AF_INET)
		res = l4lb_parse_ipv4(skb, off, quoted, pkt);
	else
		res = l4lb_parse_ipv6(skb, off, pkt);
	if (res != L4LB_PARSE_OK)
		return res;
	return l4lb_parse_l4(skb, pkt, quoted);
}

/* Of TCP; the hooks of the stack get packets without padding. */
static inline bool l4lb_segment_has_payload(const struct sk_buff *skb,
					    const struct l4lb_pkt *pkt)
{
	const struct tcphdr *tcp;
	struct tcphdr _tcp;

	tcp = skb_header_pointer(skb, pkt->l4, sizeof(_tcp), &_tcp);
	return tcp && pkt->l4 + tcp->doff * 4 < skb->len;
}

#endif /* _L4LB_PARSE_H */

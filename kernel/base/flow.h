/* SPDX-License-Identifier: GPL-2.0 */
/*
 * skb -> struct l4lb_pkt: the only parser of packet headers on the way in.
 *
 * skb->data is at the network header in every hook that calls it.  Nothing
 * here trusts a length field, and nothing keeps a pointer into the packet.
 */
#ifndef _L4LB_FLOW_H
#define _L4LB_FLOW_H

#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/sctp.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "sched.h"

enum l4lb_parse {
	L4LB_PARSE_OK,		/* flow, l4 and tcp are filled in */
	L4LB_PARSE_FRAGMENT,	/* a fragment: nothing but l3 is known */
	L4LB_PARSE_OTHER,	/* no protocol of ours; flow.proto says which */
	L4LB_PARSE_BAD,		/* truncated or malformed */
};

/**
 * struct l4lb_pkt - a parsed packet
 * @flow: addresses, ports and protocol, as written in the packet
 * @l4: offset of the L4 header from skb->data
 * @tcp: TCP flag byte (FIN 0x01 .. CWR 0x80)
 * @chunk: type of the SCTP chunk that the packet stands for (SCTP_CID_*)
 * @hook: NF_INET_*, where it was met
 */
struct l4lb_pkt {
	struct l4lb_flow	flow;
	unsigned int		l4;
	u8			tcp;
	u8			chunk;
	u8			hook;
};

enum {
	L4LB_TCP_FLAG_FIN = 0x01,
	L4LB_TCP_FLAG_SYN = 0x02,
	L4LB_TCP_FLAG_RST = 0x04,
	L4LB_TCP_FLAG_ACK = 0x10,
};

static __always_inline enum l4lb_parse
l4lb_parse_ipv4(const struct sk_buff *skb, unsigned int off, bool quoted,
		struct l4lb_pkt *pkt)
{
	const struct iphdr *iph;
	struct iphdr _iph;

	iph = skb_header_pointer(skb, off, sizeof(_iph), &_iph);
	if (!iph || iph->version != 4 || iph->ihl < 5)
		return L4LB_PARSE_BAD;
	pkt->l4 = off + iph->ihl * 4;
	pkt->flow.proto = iph->protocol;
	pkt->flow.saddr = (union nf_inet_addr){ .ip = iph->saddr };
	pkt->flow.daddr = (union nf_inet_addr){ .ip = iph->daddr };
	/* A first fragment has its ports: enough to tell what is quoted. */
	if (iph->frag_off & htons(quoted ? IP_OFFSET : IP_MF | IP_OFFSET))
		return L4LB_PARSE_FRAGMENT;
	return L4LB_PARSE_OK;
}

static __always_inline enum l4lb_parse
l4lb_parse_ipv6(const struct sk_buff *skb, unsigned int off,
		struct l4lb_pkt *pkt)
{
	const struct ipv6hdr *iph;
	struct ipv6hdr _iph;
	__be16 frag = 0;
	int l4;
	u8 next;

	iph = skb_header_pointer(skb, off, sizeof(_iph), &_iph);
	if (!iph || iph->version != 6)
		return L4LB_PARSE_BAD;
	pkt->flow.saddr.in6 = iph->saddr;
	pkt->flow.daddr.in6 = iph->daddr;
	next = iph->nexthdr;
	/* An extension header, as the stack has it.  But what it protects is
	 * not ours to read, let alone to change.
	 */
	if (next == NEXTHDR_AUTH) {
		pkt->l4 = off + sizeof(_iph);
		pkt->flow.proto = next;
		return L4LB_PARSE_OK;
	}
	l4 = ipv6_skip_exthdr(skb, off + sizeof(_iph), &next, &frag);
	if (l4 < 0)
		return L4LB_PARSE_BAD;
	pkt->l4 = l4;
	pkt->flow.proto = next;
	/* A non-first fragment has no L4 header; a first one was left by
	 * reassembly only inside an ICMP error, where its ports are usable.
	 */
	if (frag & htons(IP6_OFFSET))
		return L4LB_PARSE_FRAGMENT;
	return L4LB_PARSE_OK;
}

/* The packet's first chunk; but an ABORT behind a COOKIE ECHO or COOKIE ACK
 * counts for more.
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

/* Ports, TCP flags and SCTP chunk; @quoted: inside an ICMP error, where eight
 * bytes of the L4 header are all there may be.
 */
static __always_inline enum l4lb_parse
l4lb_parse_l4(const struct sk_buff *skb, struct l4lb_pkt *pkt, bool quoted)
{
	union {
		struct tcphdr	tcp;
		struct udphdr	udp;
		struct sctphdr	sctp;
		__be16		ports[2];
	} _l4;
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
	pkt->tcp = 0;
	if (!quoted && pkt->flow.proto == IPPROTO_TCP) {
		const struct tcphdr *tcp = (const struct tcphdr *)ports;

		if (tcp->doff < 5)
			return L4LB_PARSE_BAD;
		pkt->tcp = tcp_flag_byte(tcp);
	}
	pkt->chunk = 0;
	if (!quoted && pkt->flow.proto == IPPROTO_SCTP)
		return l4lb_parse_chunk(skb, pkt);
	return L4LB_PARSE_OK;
}

/* Does it ask for a new connection? */
static inline bool l4lb_pkt_opens(const struct l4lb_pkt *pkt)
{
	if (pkt->flow.proto == IPPROTO_TCP)
		return pkt->tcp & L4LB_TCP_FLAG_SYN;
	return pkt->flow.proto == IPPROTO_SCTP && pkt->chunk == SCTP_CID_INIT;
}

/* Does it end one, or say that there is none? */
static inline bool l4lb_pkt_aborts(const struct l4lb_pkt *pkt)
{
	if (pkt->flow.proto == IPPROTO_TCP)
		return pkt->tcp & L4LB_TCP_FLAG_RST;
	return pkt->flow.proto == IPPROTO_SCTP && pkt->chunk == SCTP_CID_ABORT;
}

/* @af is a constant in every caller: one copy of the code per family. */
static __always_inline enum l4lb_parse
l4lb_parse(const struct sk_buff *skb, u8 af, unsigned int off, bool quoted,
	   struct l4lb_pkt *pkt)
{
	enum l4lb_parse res;

	pkt->flow.af = af;
	pkt->flow.sport = 0;
	pkt->flow.dport = 0;
	pkt->flow.hash = 0;
	if (af == AF_INET)
		res = l4lb_parse_ipv4(skb, off, quoted, pkt);
	else
		res = l4lb_parse_ipv6(skb, off, pkt);
	if (res != L4LB_PARSE_OK)
		return res;
	return l4lb_parse_l4(skb, pkt, quoted);
}

static inline bool l4lb_is_icmp(const struct l4lb_flow *flow)
{
	return flow->proto ==
	       (flow->af == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

static inline bool l4lb_is_ipsec(const struct l4lb_flow *flow)
{
	return flow->proto == IPPROTO_ESP || flow->proto == IPPROTO_AH;
}

/* The flow of the packets that go the other way. */
static inline struct l4lb_flow l4lb_flow_inverse(const struct l4lb_flow *flow)
{
	return (struct l4lb_flow) {
		.saddr	= flow->daddr,
		.daddr	= flow->saddr,
		.sport	= flow->dport,
		.dport	= flow->sport,
		.af	= flow->af,
		.proto	= flow->proto,
	};
}

#endif /* _L4LB_FLOW_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* A parsed packet and its flow. */
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
	L4LB_PARSE_OK,		/* flow, l4, tcp and chunk are filled in */
	L4LB_PARSE_FRAGMENT,	/* a fragment: its ports are not known */
	L4LB_PARSE_OTHER,	/* not TCP, UDP or SCTP; see flow.proto */
	L4LB_PARSE_BAD,		/* truncated or malformed */
};

/**
 * struct l4lb_pkt - a parsed packet
 * @flow: addresses, ports and protocol, as written in the packet
 * @l4: offset of the L4 header from skb->data
 * @tcp: TCP flag byte (FIN 0x01 .. CWR 0x80)
 * @chunk: type of the SCTP chunk that decides the state (SCTP_CID_*)
 * @hook: NF_INET_*, where the packet was seen
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

/* Does the packet ask for a new connection? */
static inline bool l4lb_pkt_opens(const struct l4lb_pkt *pkt)
{
	if (pkt->flow.proto == IPPROTO_TCP)
		return pkt->tcp & L4LB_TCP_FLAG_SYN;
	return pkt->flow.proto == IPPROTO_SCTP && pkt->chunk == SCTP_CID_INIT;
}

/* Does the packet begin a connection, and not only one that is not known here? */
static inline bool l4lb_pkt_begins(const struct l4lb_pkt *pkt)
{
	return pkt->flow.proto == IPPROTO_UDP || l4lb_pkt_opens(pkt);
}

/* Does the packet end a connection, or say that there is none? */
static inline bool l4lb_pkt_aborts(const struct l4lb_pkt *pkt)
{
	if (pkt->flow.proto == IPPROTO_TCP)
		return pkt->tcp & L4LB_TCP_FLAG_RST;
	return pkt->flow.proto == IPPROTO_SCTP && pkt->chunk == SCTP_CID_ABORT;
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

/* The flow of the packets in the opposite direction. */
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

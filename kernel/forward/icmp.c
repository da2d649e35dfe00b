// SPDX-License-Identifier: GPL-2.0
/*
 * An ICMP error quotes the packet it is about, as the error's sender saw it:
 *
 *	about a reply	 quotes VIP -> client and is sent to the VIP; goes to
 *			 the real server, with NAT rewritten to its address
 *	about a request	 quotes client -> real server and is sent to the client
 *			 from the real server's side; gets the VIP's address
 *			(full NAT: quotes local end -> real server, and is sent here)
 *	about a tunnel	 quotes director -> real server and is sent to the
 *			 director; see tunnel_error.c
 */
#include "forward/icmp.h"

#include <linux/icmpv6.h>

#include "base/drop.h"
#include "base/parse.h"
#include "conn/latency.h"
#include "conn/lookup.h"
#include "forward/checksum.h"
#include "forward/forward.h"
#include "forward/full_nat.h"
#include "forward/lazy.h"
#include "forward/nat.h"
#include "forward/one_packet.h"
#include "forward/schedule.h"
#include "forward/tunnel_error.h"
#include "service/account.h"
#include "service/find.h"
#include "service/limit.h"
#include "service/server_table.h"

/* Bytes of the quoted packet to pull: enough for a tunnel's outer header, its
 * encapsulation, the inner header and the inner ports.
 */
#define QUOTE_HEADERS	256

static bool is_error(u8 af, u8 type)
{
	if (af == AF_INET6)
		return !(type & ICMPV6_INFOMSG_MASK);
	return type == ICMP_DEST_UNREACH || type == ICMP_SOURCE_QUENCH ||
	       type == ICMP_TIME_EXCEEDED;
}

/*
 * Pull the headers into the linear area before they are used: others may still
 * write to page fragments, and a second read could differ from the first.
 */
static bool quote_parse(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			struct l4lb_quote *quote)
{
	const struct icmphdr *icmp;
	struct icmphdr _icmp;

	icmp = skb_header_pointer(skb, pkt->l4, sizeof(_icmp), &_icmp);
	if (!icmp || !is_error(pkt->flow.af, icmp->type))
		return false;
	quote->type = icmp->type;
	quote->code = icmp->code;
	quote->info = pkt->flow.af == AF_INET ? ntohs(icmp->un.frag.mtu) :
						ntohl(icmp->un.gateway);
	quote->off = pkt->l4 + sizeof(_icmp);
	if (!pskb_may_pull(skb, min(skb->len, quote->off + QUOTE_HEADERS)))
		return false;
	quote->parse = l4lb_parse_packet(skb, pkt->flow.af, quote->off, true,
					 &quote->pkt);
	return true;
}

/* Sysctl schedule_icmp: the error is scheduled like a packet of its flow.  A
 * hashing scheduler chooses the real server that the flow has.
 */
static unsigned int icmp_schedule(struct sk_buff *skb,
				  const struct l4lb_pkt *pkt,
				  struct l4lb_net *ln,
				  const struct l4lb_flow *flow,
				  unsigned int quoted)
{
	enum l4lb_drop reason = L4LB_DROP_NO_DEST;
	struct l4lb_conn *conn, once;
	struct l4lb_service *svc;

	if (!l4lb_flow_may_start(flow))
		return NF_ACCEPT;
	svc = l4lb_service_lookup(ln, skb->mark, flow);
	if (!svc)
		return NF_ACCEPT;
	if (!l4lb_icmp_checksum_ok(skb, pkt, ln))
		return NF_DROP;
	if (l4lb_service_calls(svc)) {
		l4lb_drop(ln, L4LB_DROP_NO_CALL_ID);
		return NF_DROP;
	}
	conn = l4lb_schedule(svc, flow, NULL, &once, &reason);
	if (!conn) {
		/* An ICMP error must not be answered. */
		if (reason == L4LB_DROP_LIMIT)
			l4lb_limit_count(svc->limit);
		l4lb_drop(ln, reason);
		return NF_DROP;
	}
	l4lb_account_in(conn->server, skb->len);
	return l4lb_forward(skb, pkt, conn, quoted);
}

/**
 * l4lb_icmp_in() - an ICMP packet on its way to a VIP
 * @skb: the packet
 * @pkt: the packet, parsed up to its ICMP header
 * @ln: namespace
 *
 * Context: RCU, BH off.  Return: netfilter verdict.
 */
unsigned int l4lb_icmp_in(struct sk_buff *skb, struct l4lb_pkt *pkt,
			  struct l4lb_net *ln)
{
	struct l4lb_conn *conn;
	struct l4lb_flow flow;
	struct l4lb_quote quote;
	int verdict = -ENOENT;

	if (!quote_parse(skb, pkt, &quote))
		return NF_ACCEPT;
	if (quote.parse == L4LB_PARSE_OTHER)
		l4lb_tunnel_error(skb, pkt, ln, &quote);
	if (quote.parse == L4LB_PARSE_BAD)
		l4lb_drop(ln, L4LB_DROP_HEADER);
	if (quote.parse != L4LB_PARSE_OK)
		return NF_ACCEPT;

	flow = l4lb_flow_inverse(&quote.pkt.flow);
	conn = l4lb_conn_find_in(ln, &flow);
	if (!conn) {
		if (flow.proto == IPPROTO_UDP)
			l4lb_tunnel_error(skb, pkt, ln, &quote);
		if (unlikely(READ_ONCE(ln->n_lazy)))
			verdict = l4lb_lazy_error_in(skb, pkt, ln, &flow, quote.off);
		if (verdict >= 0)
			return verdict;
		return READ_ONCE(ln->sysctl.schedule_icmp) ?
		       icmp_schedule(skb, pkt, ln, &flow, quote.off) :
		       NF_ACCEPT;
	}
	if (!l4lb_server_available(conn->server)) {
		l4lb_drop(ln, l4lb_server_lack(conn->server));
		return NF_DROP;
	}
	if (l4lb_conn_is_nat(conn) && !l4lb_icmp_checksum_ok(skb, pkt, ln))
		return NF_DROP;
	l4lb_account_in(conn->server, skb->len);
	return l4lb_forward(skb, pkt, conn, quote.off);
}

/* Does it say that the packet has not arrived, and could not by being smaller? */
static bool is_refusal(u8 af, const struct l4lb_quote *quote)
{
	if (af == AF_INET6)
		return quote->type == ICMPV6_DEST_UNREACH;
	return quote->type == ICMP_DEST_UNREACH && quote->code != ICMP_FRAG_NEEDED;
}

/* An ICMP error on its way to a client, about a packet without a connection of NAT. */
static unsigned int error_about_none(struct sk_buff *skb,
				     const struct l4lb_pkt *pkt,
				     struct l4lb_net *ln,
				     const struct l4lb_flow *flow,
				     unsigned int quoted)
{
	struct l4lb_conn *conn = l4lb_conn_find_passing(ln, flow);
	int verdict = -ENOENT;

	if (conn) {
		/* The real server has the VIP: nothing to rewrite. */
		l4lb_account_out(conn->server, skb->len);
		return NF_ACCEPT;
	}
	if (flow->proto != IPPROTO_UDP && READ_ONCE(ln->n_lazy))
		verdict = l4lb_lazy_error_out(skb, pkt, ln, flow, quoted);
	else if (flow->proto == IPPROTO_UDP && READ_ONCE(ln->n_one_packet) &&
		 l4lb_icmp_checksum_ok(skb, pkt, ln))
		verdict = l4lb_one_packet_reply(skb, pkt, ln, flow, quoted);
	return verdict < 0 ? NF_ACCEPT : verdict;
}

/**
 * l4lb_icmp_out() - an ICMP packet on its way to a client
 * @skb: the packet
 * @pkt: the packet, parsed up to its ICMP header
 * @ln: namespace
 *
 * Context: RCU, BH off.  Return: netfilter verdict.
 */
unsigned int l4lb_icmp_out(struct sk_buff *skb, struct l4lb_pkt *pkt,
			   struct l4lb_net *ln)
{
	struct l4lb_conn *conn;
	struct l4lb_flow flow;
	struct l4lb_quote quote;

	if (!quote_parse(skb, pkt, &quote) || quote.parse != L4LB_PARSE_OK)
		return NF_ACCEPT;
	flow = l4lb_flow_inverse(&quote.pkt.flow);
	conn = l4lb_conn_find_out(ln, &flow);
	if (!conn && unlikely(READ_ONCE(ln->snat)))
		conn = l4lb_conn_find_local(ln, &flow);
	if (!conn)
		return error_about_none(skb, pkt, ln, &flow, quote.off);
	if (!l4lb_icmp_checksum_ok(skb, pkt, ln))
		return NF_DROP;
	l4lb_account_out(conn->server, skb->len);
	if (l4lb_conn_has_use(conn, L4LB_USE_LATENCY) && is_refusal(pkt->flow.af, &quote))
		l4lb_latency_note_error(conn);
	if (conn->method == L4LB_FULL_NAT)
		return l4lb_full_nat_back(skb, pkt, conn, quote.off);
	return l4lb_nat_reply(skb, pkt, conn, quote.off);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * ICMP errors quote the packet they are about, as its sender last saw it:
 *
 *	about a reply	 VIP -> client quoted, sent to the VIP: goes to the
 *			 real server, with NAT under its own address
 *	about a request	 client -> real server quoted, from the real server's
 *			 side to the client: gets the VIP's address
 *	about a tunnel	 director -> real server quoted: our own packet was
 *			 too big, so the route learns the MTU and the client
 *			 is told when it tries again
 */
#include <linux/icmpv6.h>
#include <net/icmp.h>
#include <net/ip6_route.h>
#include <net/route.h>

#include "forward.h"

/* The error, and the packet it quotes. */
struct quote {
	u8		type, code;
	u32		info;		/* MTU, for those that carry it */
	unsigned int	off;		/* of the quoted packet */
	struct l4lb_pkt	pkt;
	enum l4lb_parse	parse;
};

static bool is_error(u8 af, u8 type)
{
	if (af == AF_INET6)
		return !(type & ICMPV6_INFOMSG_MASK);
	return type == ICMP_DEST_UNREACH || type == ICMP_SOURCE_QUENCH ||
	       type == ICMP_TIME_EXCEEDED;
}

static bool quote_parse(const struct sk_buff *skb, const struct l4lb_pkt *pkt,
			struct quote *quote)
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
	quote->parse = l4lb_parse(skb, pkt->flow.af, quote->off, true,
				  &quote->pkt);
	return true;
}

/* What is rewritten gets a new checksum, so a wrong one must end here. */
static bool checksum_ok(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			const struct l4lb_net *ln)
{
	if (pkt->hook == NF_INET_LOCAL_OUT ||
	    !nf_checksum(skb, pkt->hook, pkt->l4, pkt->flow.proto,
			 pkt->flow.af))
		return true;
	l4lb_drop(ln, L4LB_DROP_CHECKSUM);
	return false;
}

/* Could @real's tunnel have made a packet of @flow? */
static bool tunnel_matches(const struct l4lb_real *real,
			   const struct l4lb_flow *flow)
{
	if (real->dest.af != flow->af ||
	    real->method != IP_VS_CONN_F_TUNNEL ||
	    !nf_inet_addr_cmp(&real->dest.addr, &flow->daddr))
		return false;
	switch (READ_ONCE(real->tun_type)) {
	case IP_VS_CONN_F_TUNNEL_TYPE_GUE:
		return flow->proto == IPPROTO_UDP &&
		       flow->dport == READ_ONCE(real->tun_port);
	case IP_VS_CONN_F_TUNNEL_TYPE_GRE:
		return flow->proto == IPPROTO_GRE;
	default:
		return flow->proto == IPPROTO_IPIP ||
		       flow->proto == IPPROTO_IPV6;
	}
}

static struct l4lb_real *tunnel_find(struct l4lb_net *ln,
				     const struct l4lb_flow *flow)
{
	struct l4lb_service *svc;
	struct l4lb_pool *pool;
	unsigned int i;

	list_for_each_entry_rcu(svc, &ln->services, list) {
		pool = rcu_dereference(svc->pool);
		for (i = 0; i < pool->n; i++) {
			struct l4lb_real *real = l4lb_real(pool->dest[i]);

			if (tunnel_matches(real, flow))
				return real;
		}
	}
	return NULL;
}

/* Our tunnel packet was too big somewhere.  The error itself goes on to the
 * local stack, like every other about a tunnel.
 */
static void tunnel_pmtu(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			struct l4lb_net *ln, const struct quote *quote)
{
	const struct l4lb_flow *flow = &quote->pkt.flow;
	bool v4 = flow->af == AF_INET;
	struct l4lb_real *real;

	if (pkt->hook != NF_INET_LOCAL_IN)
		return;
	if (v4 && (quote->type != ICMP_DEST_UNREACH || quote->code != ICMP_FRAG_NEEDED))
		return;
	if (!v4 && quote->type != ICMPV6_PKT_TOOBIG)
		return;
	real = tunnel_find(ln, flow);
	if (!real || !checksum_ok(skb, pkt, ln) ||
	    !pskb_may_pull(skb, quote->off + (v4 ? sizeof(struct iphdr) :
						   sizeof(struct ipv6hdr))))
		return;

	/* These read the quoted header at skb->data. */
	__skb_pull(skb, quote->off);
	if (v4)
		ipv4_update_pmtu(skb, ln->net, quote->info, 0, flow->proto);
	else
		ip6_update_pmtu(skb, ln->net, htonl(quote->info), 0, 0,
				sock_net_uid(ln->net, NULL));
	__skb_push(skb, quote->off);
	l4lb_route_flush(real);
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
	struct quote quote;

	if (!quote_parse(skb, pkt, &quote))
		return NF_ACCEPT;
	if (quote.parse == L4LB_PARSE_OTHER)
		tunnel_pmtu(skb, pkt, ln, &quote);
	if (quote.parse == L4LB_PARSE_BAD)
		l4lb_drop(ln, L4LB_DROP_HEADER);
	if (quote.parse != L4LB_PARSE_OK)
		return NF_ACCEPT;

	flow = l4lb_flow_inverse(&quote.pkt.flow);
	conn = l4lb_conn_find_in(ln, &flow);
	if (!conn) {
		if (flow.proto == IPPROTO_UDP)
			tunnel_pmtu(skb, pkt, ln, &quote);
		return NF_ACCEPT;
	}
	if (!l4lb_real_available(conn->real)) {
		l4lb_drop(ln, L4LB_DROP_DEST_GONE);
		return NF_DROP;
	}
	if (conn->method == IP_VS_CONN_F_MASQ && !checksum_ok(skb, pkt, ln))
		return NF_DROP;
	l4lb_account_in(conn->real, skb->len);
	return l4lb_forward(skb, pkt, conn, quote.off);
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
	struct quote quote;

	if (!quote_parse(skb, pkt, &quote) || quote.parse != L4LB_PARSE_OK)
		return NF_ACCEPT;
	flow = l4lb_flow_inverse(&quote.pkt.flow);
	conn = l4lb_conn_find_out(ln, &flow);
	if (!conn) {
		/* From a real server with the VIP: right as it is. */
		conn = l4lb_conn_find_passing(ln, &flow);
		if (conn)
			l4lb_account_out(conn->real, skb->len);
		return NF_ACCEPT;
	}
	if (!checksum_ok(skb, pkt, ln))
		return NF_DROP;
	l4lb_account_out(conn->real, skb->len);
	return l4lb_nat_reply(skb, pkt, conn, quote.off);
}

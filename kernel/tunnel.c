// SPDX-License-Identifier: GPL-2.0
/*
 * IP tunnelling: the packet goes to the real server inside another one, of
 * either family.  The real server unpacks it, has the VIP, and replies
 * straight to the client.
 *
 *	outer source	chosen by the route to the real server
 *	outer TTL	the inner one's, after it was decreased
 *	outer DSCP/ECN	the inner one's; CE becomes ECT(0) (RFC 3168, 9.1.1)
 *	outer DF	the inner one's, if net.ipv4.vs.pmtu_disc is on
 *
 * The inner packet keeps its size or its sender learns the smaller MTU; only
 * what may be fragmented is, on the outside.
 */
#include "forward.h"

#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ip_tunnels.h>

/* What the outer header takes over from the inner one. */
struct inner {
	u8	proto;		/* IPPROTO_IPIP or IPPROTO_IPV6 */
	u8	tos;
	u8	ttl;
	__be16	df;
};

static void inner_read(const struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct inner *in)
{
	if (pkt->flow.af == AF_INET) {
		in->proto = IPPROTO_IPIP;
		in->tos = ip_hdr(skb)->tos;
		in->ttl = ip_hdr(skb)->ttl;
		in->df = ip_hdr(skb)->frag_off & htons(IP_DF);
	} else {
		in->proto = IPPROTO_IPV6;
		in->tos = ipv6_get_dsfield(ipv6_hdr(skb));
		in->ttl = ipv6_hdr(skb)->hop_limit;
		in->df = 0;
	}
}

static void push_ipv4(struct sk_buff *skb, const struct inner *in,
		      const struct l4lb_conn *conn,
		      const struct l4lb_route *rt)
{
	struct iphdr *iph = skb_push(skb, sizeof(*iph));

	skb_reset_network_header(skb);
	memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
	*iph = (struct iphdr) {
		.version	= 4,
		.ihl		= sizeof(*iph) / 4,
		.tos		= INET_ECN_encapsulate(in->tos, in->tos),
		.ttl		= in->ttl,
		.protocol	= in->proto,
		.frag_off	= in->df,
		.saddr		= rt->saddr.ip,
		.daddr		= conn->daddr.ip,
	};
	skb->protocol = htons(ETH_P_IP);
	ip_select_ident_segs(conn->ln->net, skb, NULL,
			     skb_shinfo(skb)->gso_segs ?: 1);
}

static void push_ipv6(struct sk_buff *skb, const struct inner *in,
		      const struct l4lb_conn *conn,
		      const struct l4lb_route *rt)
{
	struct ipv6hdr *iph = skb_push(skb, sizeof(*iph));

	skb_reset_network_header(skb);
	memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
	ip6_flow_hdr(iph, INET_ECN_encapsulate(in->tos, in->tos), 0);
	iph->nexthdr = in->proto;
	iph->hop_limit = in->ttl;
	iph->saddr = rt->saddr.in6;
	iph->daddr = conn->daddr.in6;
	skb->protocol = htons(ETH_P_IPV6);
	/* Routers don't fragment IPv6, so the inner packet's leave to be
	 * fragmented is used here.
	 */
	skb->ignore_df = 1;
}

/* What fits inside.  An IPv6 sender has no use for less than 1,280. */
static unsigned int inner_mtu(const struct l4lb_conn *conn,
			      const struct l4lb_pkt *pkt,
			      const struct l4lb_route *rt)
{
	unsigned int outer = conn->real->dest.af == AF_INET ?
			     sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	unsigned int mtu = dst_mtu(rt->dst) - outer;

	return pkt->flow.af == AF_INET6 ? max_t(unsigned int, mtu,
						IPV6_MIN_MTU) : mtu;
}

static int encapsulate(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       const struct l4lb_conn *conn,
		       const struct l4lb_route *rt)
{
	bool v4 = conn->real->dest.af == AF_INET;
	unsigned int need = LL_RESERVED_SPACE(rt->dst->dev) +
			    (v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	struct inner in;

	inner_read(skb, pkt, &in);
	if (!READ_ONCE(conn->ln->sysctl.pmtu_disc))
		in.df = 0;
	if (skb_cow_head(skb, need) ||
	    iptunnel_handle_offloads(skb, v4 ? SKB_GSO_IPXIP4 : SKB_GSO_IPXIP6))
		return -ENOMEM;

	skb_set_inner_ipproto(skb, in.proto);
	skb->transport_header = skb->network_header;
	if (v4)
		push_ipv4(skb, &in, conn, rt);
	else
		push_ipv6(skb, &in, conn, rt);
	return 0;
}

static bool fits(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		 const struct l4lb_conn *conn, const struct l4lb_route *rt)
{
	/* Without path MTU discovery the outside is fragmented. */
	if (pkt->flow.af == AF_INET && !READ_ONCE(conn->ln->sysctl.pmtu_disc))
		return true;
	return l4lb_forward_fits(skb, pkt, conn->ln, inner_mtu(conn, pkt, rt));
}

unsigned int l4lb_tunnel_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn)
{
	struct net *net = conn->ln->net;
	const struct l4lb_route *rt;
	unsigned int verdict;

	rt = l4lb_forward_route(skb, pkt, conn, &verdict);
	if (!rt)
		return verdict;
	if (rt->local)
		return NF_ACCEPT;
	if (!fits(skb, pkt, conn, rt))
		return NF_DROP;
	if (encapsulate(skb, pkt, conn, rt)) {
		l4lb_drop(conn->ln, L4LB_DROP_MEMORY);
		return NF_DROP;
	}
	l4lb_forward_prepare(skb, pkt, rt);
	if (conn->real->dest.af == AF_INET)
		ip_local_out(net, NULL, skb);
	else
		ip6_local_out(net, NULL, skb);
	return NF_STOLEN;
}

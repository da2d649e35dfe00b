// SPDX-License-Identifier: GPL-2.0
/*
 * IP tunnelling: the packet is sent to the real server inside another IP packet
 * of either family, with GUE (UDP) or GRE in between if the server's tunnel
 * type says so.  The real server has the VIP, unpacks the packet and replies
 * straight to the client.
 *
 *	outer source	chosen by the route to the real server
 *	outer TTL	the inner one's, after it was decreased
 *	outer DSCP/ECN	the inner one's; CE becomes ECT(0) (RFC 3168, 9.1.1)
 *	outer DF	the inner one's, if net.ipv4.vs.pmtu_disc is on
 *
 * The inner packet is never fragmented.  If it is too big, either the outer
 * packet is fragmented, or the sender gets an ICMP error with the smaller MTU.
 */
#include "forward/tunnel.h"

#include <net/gre.h>
#include <net/gue.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/ip_tunnels.h>
#include <net/udp.h>

#include "base/drop.h"
#include "forward/send.h"

/* Fields of the inner header that the outer one depends on. */
struct inner {
	u8	proto;		/* IPPROTO_IPIP or IPPROTO_IPV6 */
	u8	tos;
	u8	ttl;
	__be16	df;
};

/* Encapsulation between outer and inner header: none, GUE in UDP, or GRE. */
struct encap {
	u8		proto;	/* of the outer header; 0 (IPIP): inner.proto */
	u8		len;	/* bytes */
	bool		csum;	/* it has a checksum */
	bool		remcsum;/* the receiver completes the inner checksum */
	__be16		port;	/* UDP destination */
};

static void encap_read(const struct sk_buff *skb,
		       const struct l4lb_server *server,
		       struct encap *e)
{
	struct l4lb_tun tun = l4lb_server_tun(server);

	*e = (struct encap) { };
	switch (tun.type) {
	case IP_VS_CONN_F_TUNNEL_TYPE_GUE:
		e->proto = IPPROTO_UDP;
		e->port = tun.port;
		e->len = sizeof(struct udphdr) + sizeof(struct guehdr);
		e->csum = tun.flags & (IP_VS_TUNNEL_ENCAP_FLAG_CSUM |
				       IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM);
		/* Only a checksum that is still to be computed can be left. */
		e->remcsum = tun.flags & IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM &&
			     skb->ip_summed == CHECKSUM_PARTIAL;
		if (e->remcsum)
			e->len += GUE_LEN_PRIV + GUE_PLEN_REMCSUM;
		break;
	case IP_VS_CONN_F_TUNNEL_TYPE_GRE:
		e->proto = IPPROTO_GRE;
		e->len = sizeof(struct gre_base_hdr);
		e->csum = tun.flags & IP_VS_TUNNEL_ENCAP_FLAG_CSUM;
		if (e->csum)
			e->len += GRE_HEADER_SECTION;
		break;
	}
}

static int encap_offload(const struct encap *e, bool outer_v4)
{
	switch (e->proto) {
	case IPPROTO_UDP:
		return (e->csum ? SKB_GSO_UDP_TUNNEL_CSUM : SKB_GSO_UDP_TUNNEL) |
		       (e->remcsum ? SKB_GSO_TUNNEL_REMCSUM : 0);
	case IPPROTO_GRE:
		return e->csum ? SKB_GSO_GRE_CSUM : SKB_GSO_GRE;
	default:
		return outer_v4 ? SKB_GSO_IPXIP4 : SKB_GSO_IPXIP6;
	}
}

/* @l3: the header; its TTL is decreased already. */
static void inner_read(const void *l3, u8 af, const struct l4lb_net *ln,
		       struct inner *in)
{
	const struct iphdr *iph = l3;
	const struct ipv6hdr *iph6 = l3;

	if (af == AF_INET) {
		in->proto = IPPROTO_IPIP;
		in->tos = iph->tos;
		in->ttl = iph->ttl;
		in->df = READ_ONCE(ln->sysctl.pmtu_disc) ?
			 iph->frag_off & htons(IP_DF) : 0;
	} else {
		in->proto = IPPROTO_IPV6;
		in->tos = ipv6_get_dsfield(iph6);
		in->ttl = iph6->hop_limit;
		in->df = 0;
	}
}

/* Remote checksum offload: tell the receiver where to start summing and where
 * to store the checksum.  A GSO packet stays CHECKSUM_PARTIAL for segmentation.
 */
static void push_remcsum(struct sk_buff *skb)
{
	u16 start = skb_checksum_start_offset(skb);
	struct {
		__be32	flags;
		__be16	start;
		__be16	offset;
	} *opt = skb_push(skb, sizeof(*opt));

	static_assert(sizeof(*opt) == GUE_LEN_PRIV + GUE_PLEN_REMCSUM);
	opt->flags = GUE_PFLAG_REMCSUM;
	opt->start = htons(start);
	opt->offset = htons(start + skb->csum_offset);
	if (skb_is_gso(skb))
		return;
	skb->ip_summed = CHECKSUM_NONE;
	skb->encapsulation = 0;
}

static void push_gue(struct sk_buff *skb, const struct inner *in,
		     const struct encap *e, const struct l4lb_conn *conn,
		     const struct l4lb_route *rt)
{
	/* Depends on the flow, to spread flows over paths and CPUs. */
	__be16 sport = udp_flow_src_port(l4lb_conn_net(conn)->net, skb, 0, 0, false);
	struct guehdr *gue;
	struct udphdr *udp;

	skb_set_inner_ipproto(skb, in->proto);
	if (e->remcsum)
		push_remcsum(skb);
	gue = skb_push(skb, sizeof(*gue));
	*gue = (struct guehdr) {
		.hlen		= (e->len - sizeof(*udp) - sizeof(*gue)) / 4,
		.proto_ctype	= in->proto,
		.flags		= e->remcsum ? GUE_FLAG_PRIV : 0,
	};
	udp = skb_push(skb, sizeof(*udp));
	skb_reset_transport_header(skb);
	*udp = (struct udphdr) {
		.source	= sport,
		.dest	= e->port,
		.len	= htons(skb->len),
	};
	if (conn->server->sched.af == AF_INET)
		udp_set_csum(!e->csum, skb, rt->saddr.ip,
			     conn->server->sched.addr.ip,
			     skb->len);
	else
		udp6_set_csum(!e->csum, skb, &rt->saddr.in6,
			      &conn->server->sched.addr.in6,
			      skb->len);
}

static void push_encap(struct sk_buff *skb, const struct inner *in,
		       const struct encap *e, const struct l4lb_conn *conn,
		       const struct l4lb_route *rt)
{
	switch (e->proto) {
	case IPPROTO_UDP:
		push_gue(skb, in, e, conn, rt);
		break;
	case IPPROTO_GRE:
		l4lb_gre_push(skb, e->len, e->csum,
			      htons(in->proto == IPPROTO_IPIP ? ETH_P_IP :
								ETH_P_IPV6));
		break;
	default:
		skb_set_inner_ipproto(skb, in->proto);
		skb->transport_header = skb->network_header;
		break;
	}
}

static void write_ipv4(struct iphdr *iph, const struct inner *in, u8 proto,
		       const struct l4lb_conn *conn,
		       const struct l4lb_route *rt)
{
	*iph = (struct iphdr) {
		.version	= 4,
		.ihl		= sizeof(*iph) / 4,
		.tos		= INET_ECN_encapsulate(in->tos, in->tos),
		.ttl		= in->ttl,
		.protocol	= proto,
		.frag_off	= in->df,
		.saddr		= rt->saddr.ip,
		.daddr		= conn->server->sched.addr.ip,
	};
}

static void write_ipv6(struct ipv6hdr *iph, const struct inner *in, u8 proto,
		       const struct l4lb_conn *conn,
		       const struct l4lb_route *rt)
{
	ip6_flow_hdr(iph, INET_ECN_encapsulate(in->tos, in->tos), 0);
	iph->nexthdr = proto;
	iph->hop_limit = in->ttl;
	iph->saddr = rt->saddr.in6;
	iph->daddr = conn->server->sched.addr.in6;
}

static void push_ipv4(struct sk_buff *skb, const struct inner *in, u8 proto,
		      const struct l4lb_conn *conn,
		      const struct l4lb_route *rt)
{
	struct iphdr *iph = skb_push(skb, sizeof(*iph));

	skb_reset_network_header(skb);
	write_ipv4(iph, in, proto, conn, rt);
	skb->protocol = htons(ETH_P_IP);
	ip_select_ident_segs(l4lb_conn_net(conn)->net, skb, NULL,
			     skb_shinfo(skb)->gso_segs ?: 1);
}

static void push_ipv6(struct sk_buff *skb, const struct inner *in, u8 proto,
		      const struct l4lb_conn *conn,
		      const struct l4lb_route *rt)
{
	struct ipv6hdr *iph = skb_push(skb, sizeof(*iph));

	skb_reset_network_header(skb);
	write_ipv6(iph, in, proto, conn, rt);
	skb->protocol = htons(ETH_P_IPV6);
	/* Routers do not fragment IPv6: allow this host to do it. */
	skb->ignore_df = 1;
}

static unsigned int outer_len(const struct l4lb_conn *conn)
{
	return conn->server->sched.af == AF_INET ? sizeof(struct iphdr) :
						sizeof(struct ipv6hdr);
}

/* MTU inside the tunnel.  IPv6 senders ignore an MTU below 1280. */
static unsigned int inner_mtu(const struct l4lb_conn *conn,
			      const struct l4lb_pkt *pkt,
			      const struct l4lb_route *rt,
			      const struct encap *e)
{
	unsigned int mtu = l4lb_dst_mtu(rt->dst) - outer_len(conn) - e->len;

	return pkt->flow.af == AF_INET6 ? max_t(unsigned int, mtu,
						IPV6_MIN_MTU) : mtu;
}

static int encapsulate(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       const struct l4lb_conn *conn,
		       const struct l4lb_route *rt, const struct encap *e)
{
	bool v4 = conn->server->sched.af == AF_INET;
	unsigned int need = LL_RESERVED_SPACE(rt->dst->dev) + e->len +
			    outer_len(conn);
	u8 proto;
	bool nested = skb->encapsulation;
	struct inner in;

	inner_read(skb_network_header(skb), pkt->flow.af, l4lb_conn_net(conn),
		   &in);
	if (skb_cow_head(skb, need) ||
	    iptunnel_handle_offloads(skb, encap_offload(e, v4)))
		return -ENOMEM;
	/* Segmentation repeats the headers up to this offset. */
	if (!nested)
		skb_reset_inner_mac_header(skb);

	push_encap(skb, &in, e, conn, rt);
	proto = e->proto ?: in.proto;
	if (v4)
		push_ipv4(skb, &in, proto, conn, rt);
	else
		push_ipv6(skb, &in, proto, conn, rt);
	return 0;
}

unsigned int l4lb_tunnel_room(const struct sk_buff *skb,
			      const struct l4lb_conn *conn)
{
	struct encap e;

	if (likely(l4lb_server_tun(conn->server).type ==
		   IP_VS_CONN_F_TUNNEL_TYPE_IPIP))
		return outer_len(conn);
	encap_read(skb, conn->server, &e);
	return outer_len(conn) + e.len;
}

/* Also sets the length and checksum as ip_local_out() does, but not skb->cb. */
int l4lb_tunnel_wrap(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_conn *conn, const struct l4lb_route *rt)
{
	struct encap e;

	encap_read(skb, conn->server, &e);
	if (encapsulate(skb, pkt, conn, rt, &e))
		return -ENOMEM;
	if (conn->server->sched.af == AF_INET) {
		struct iphdr *iph = ip_hdr(skb);

		iph->tot_len = htons(skb->len);
		iph->check = ip_fast_csum(iph, sizeof(*iph) / 4);
	} else {
		ipv6_hdr(skb)->payload_len = htons(skb->len -
						   sizeof(struct ipv6hdr));
	}
	return 0;
}

unsigned int l4lb_tunnel_ipip_room(const struct l4lb_conn *conn)
{
	return l4lb_server_tun(conn->server).type ==
	       IP_VS_CONN_F_TUNNEL_TYPE_IPIP ? outer_len(conn) : 0;
}

void l4lb_tunnel_ipip_write(void *outer, u8 af, unsigned int len,
			    const struct l4lb_conn *conn,
			    const struct l4lb_route *rt)
{
	const unsigned int room = outer_len(conn);
	struct iphdr *iph = outer;
	struct ipv6hdr *iph6 = outer;
	struct inner in;

	inner_read(outer + room, af, l4lb_conn_net(conn), &in);
	if (conn->server->sched.af == AF_INET6) {
		write_ipv6(iph6, &in, in.proto, conn, rt);
		iph6->payload_len = htons(len);
		return;
	}
	write_ipv4(iph, &in, in.proto, conn, rt);
	if (!in.df)
		__ip_select_ident(l4lb_conn_net(conn)->net, iph, 1);
	iph->tot_len = htons(len + room);
	iph->check = ip_fast_csum(iph, sizeof(*iph) / 4);
}

static bool fits(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		 const struct l4lb_conn *conn, const struct l4lb_route *rt,
		 const struct encap *e)
{
	/* Without path MTU discovery the outer packet is fragmented. */
	if (pkt->flow.af == AF_INET && !READ_ONCE(l4lb_conn_net(conn)->sysctl.pmtu_disc))
		return true;
	return l4lb_forward_fits(skb, pkt, l4lb_conn_net(conn), inner_mtu(conn, pkt, rt, e));
}

static unsigned int xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			 const struct l4lb_conn *conn,
			 const struct l4lb_route *rt, const struct encap *e)
{
	struct net *net = l4lb_conn_net(conn)->net;

	if (encapsulate(skb, pkt, conn, rt, e)) {
		l4lb_drop(l4lb_conn_net(conn), L4LB_DROP_MEMORY);
		return NF_DROP;
	}
	l4lb_forward_prepare(skb, pkt, conn, rt);
	/* skb->cb still has the options of the inner header. */
	if (conn->server->sched.af == AF_INET) {
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
		ip_local_out(net, NULL, skb);
	} else {
		memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
		ip6_local_out(net, NULL, skb);
	}
	return NF_STOLEN;
}

/* SCTP with CHECKSUM_PARTIAL, into a tunnel with a checksum.  That checksum can
 * be derived from a pending Internet checksum, but not from a pending CRC: the
 * CRC has to be computed first, in each segment.
 */
static unsigned int xmit_sctp(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn,
			      const struct l4lb_route *rt)
{
	struct sk_buff *segs, *next;
	struct encap e;

	if (!skb_is_gso(skb)) {
		if (skb_crc32c_csum_help(skb))
			goto no_memory;
		encap_read(skb, conn->server, &e);
		return xmit(skb, pkt, conn, rt, &e);
	}
	segs = skb_gso_segment(skb, 0);
	if (IS_ERR_OR_NULL(segs))
		goto no_memory;
	consume_skb(skb);
	skb_list_walk_safe(segs, skb, next) {
		skb_mark_not_on_list(skb);
		encap_read(skb, conn->server, &e);
		if (xmit(skb, pkt, conn, rt, &e) == NF_DROP)
			kfree_skb(skb);
	}
	return NF_STOLEN;

no_memory:
	l4lb_drop(l4lb_conn_net(conn), L4LB_DROP_MEMORY);
	return NF_DROP;
}

unsigned int l4lb_tunnel_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn)
{
	const struct l4lb_route *rt;
	unsigned int verdict;
	struct encap e;

	rt = l4lb_forward_route(skb, pkt, conn, &verdict);
	if (!rt)
		return verdict;
	if (rt->local)
		return NF_ACCEPT;
	encap_read(skb, conn->server, &e);
	if (!fits(skb, pkt, conn, rt, &e))
		return NF_DROP;
	if (e.csum && skb->ip_summed == CHECKSUM_PARTIAL &&
	    skb_csum_is_sctp(skb))
		return xmit_sctp(skb, pkt, conn, rt);
	return xmit(skb, pkt, conn, rt, &e);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * ICMP errors about our own tunnel packets.  They are sent to the director,
 * which made those packets, but concern the client, unaware of the tunnel:
 *
 *	router -> director	quotes director -> real server (client -> VIP)
 *	VIP -> client		quotes client -> VIP
 *
 *	too big			the route learns the MTU; the client is told the
 *				MTU inside the tunnel if its packet must not be
 *				fragmented
 *	unreachable, expired	passed on to the client
 *	anything else		not passed on
 *
 * The client is told only if the error quotes a packet of a known connection in
 * the tunnel of that connection's real server.  The error sent to the client is
 * no longer than the one received, and obeys the stack's ICMP rate limits.
 */
#include "forward/tunnel_error.h"

#include <linux/icmpv6.h>
#include <net/gre.h>
#include <net/gue.h>
#include <net/icmp.h>
#include <net/ip6_route.h>
#include <net/route.h>

#include "base/parse.h"
#include "conn/lookup.h"
#include "forward/checksum.h"
#include "service/find.h"
#include "service/route.h"
#include "service/tunnel_table.h"

#define MTU_UNPROVEN	IPV6_MIN_MTU	/* least that is learned from a quote
					 * that names no client
					 */
#define QUOTED_PORTS	4	/* bytes of the inner L4 header that must be there */

/* The client's packet inside the quoted one. */
struct carried {
	unsigned int	off;		/* from skb->data */
	struct l4lb_pkt	pkt;
};

/* The ICMP error for the client. */
struct news {
	u8	type, code;
	u32	info;
};

/* ---- the inner packet ---- */

static u8 family_of(__be16 ethertype)
{
	return ethertype == htons(ETH_P_IP) ? AF_INET :
	       ethertype == htons(ETH_P_IPV6) ? AF_INET6 : AF_UNSPEC;
}

/* Length of UDP header and GUE header as tunnel.c makes them; 0: cut off. */
static unsigned int gue_len(const struct sk_buff *skb, unsigned int off,
			    u8 *proto)
{
	const struct guehdr *gue;
	struct guehdr _gue;

	off += sizeof(struct udphdr);
	gue = skb_header_pointer(skb, off, sizeof(_gue), &_gue);
	if (!gue)
		return 0;
	*proto = gue->proto_ctype;
	if (gue->version || gue->control ||
	    (gue->hlen && gue->hlen * 4 != GUE_LEN_PRIV + GUE_PLEN_REMCSUM))
		*proto = 0;
	return sizeof(struct udphdr) + sizeof(_gue) + gue->hlen * 4;
}

static unsigned int gre_len(const struct sk_buff *skb, unsigned int off,
			    u8 *af)
{
	const struct gre_base_hdr *gre;
	struct gre_base_hdr _gre;

	gre = skb_header_pointer(skb, off, sizeof(_gre), &_gre);
	if (!gre)
		return 0;
	*af = gre->flags & ~GRE_CSUM ? AF_UNSPEC : family_of(gre->protocol);
	return sizeof(_gre) +
	       (gre->flags & GRE_CSUM ? GRE_HEADER_SECTION : 0);
}

/*
 * Find the client's packet inside the quoted tunnel packet.
 *
 * Return: %L4LB_PARSE_OK with @in filled in, %L4LB_PARSE_BAD if the quote is
 * too short, %L4LB_PARSE_OTHER if we make no such tunnel packets.
 */
static enum l4lb_parse carried_parse(const struct sk_buff *skb,
				     const struct l4lb_quote *quote,
				     struct carried *in)
{
	bool v4 = quote->pkt.flow.af == AF_INET;
	unsigned int l4 = quote->pkt.l4, between = 0;
	u8 proto = quote->pkt.flow.proto, af = AF_UNSPEC;
	enum l4lb_parse parse;

	/* Our tunnel packets have no options and no extension headers. */
	if (l4 - quote->off != (v4 ? sizeof(struct iphdr) :
				     sizeof(struct ipv6hdr)))
		return L4LB_PARSE_OTHER;
	if (proto == IPPROTO_UDP || proto == IPPROTO_GRE) {
		between = proto == IPPROTO_UDP ? gue_len(skb, l4, &proto) :
						 gre_len(skb, l4, &af);
		if (!between)
			return L4LB_PARSE_BAD;
	}
	if (proto == IPPROTO_IPIP)
		af = AF_INET;
	else if (proto == IPPROTO_IPV6)
		af = AF_INET6;
	if (af == AF_UNSPEC)
		return L4LB_PARSE_OTHER;
	in->off = l4 + between;
	if (skb->len < in->off + QUOTED_PORTS +
		       (af == AF_INET ? sizeof(struct iphdr) :
					sizeof(struct ipv6hdr)))
		return L4LB_PARSE_BAD;
	parse = l4lb_parse_packet(skb, af, in->off, true, &in->pkt);
	return parse == L4LB_PARSE_OK ? parse : L4LB_PARSE_OTHER;
}

/* ---- too big ---- */

static bool is_too_big(u8 af, const struct l4lb_quote *quote)
{
	if (af == AF_INET6)
		return quote->type == ICMPV6_PKT_TOOBIG;
	return quote->type == ICMP_DEST_UNREACH &&
	       quote->code == ICMP_FRAG_NEEDED;
}

/* ipv4_update_pmtu() and ip6_update_pmtu() read the header at skb->data. */
static void learn_mtu(struct sk_buff *skb, struct net *net, u8 af,
		      const struct l4lb_quote *quote)
{
	__skb_pull(skb, quote->off);
	if (af == AF_INET)
		ipv4_update_pmtu(skb, net, quote->info, 0,
				 quote->pkt.flow.proto);
	else
		ip6_update_pmtu(skb, net, htonl(quote->info), 0, 0,
				sock_net_uid(net, NULL));
	__skb_push(skb, quote->off);
}

/* May the client's packet be fragmented on its way? */
static bool may_fragment(const struct sk_buff *skb, const struct carried *in)
{
	const struct iphdr *iph = (const struct iphdr *)(skb->data + in->off);

	return in->pkt.flow.af == AF_INET && !(iph->frag_off & htons(IP_DF));
}

/* The MTU inside the tunnel, from the current route: the next packet that is
 * too big gets the same answer.
 */
static bool tell_mtu(struct l4lb_server *server, unsigned int overhead, u8 af,
		     struct news *news)
{
	const struct l4lb_route *rt = l4lb_route_get(server,
						     IP_VS_CONN_F_TUNNEL);

	if (IS_ERR(rt) || rt->local)
		return false;
	news->info = dst_mtu(rt->dst) - overhead;
	if (af == AF_INET) {
		news->type = ICMP_DEST_UNREACH;
		news->code = ICMP_FRAG_NEEDED;
	} else {
		news->type = ICMPV6_PKT_TOOBIG;
		news->code = 0;
		news->info = max_t(u32, news->info, IPV6_MIN_MTU);
	}
	return true;
}

/* ---- other errors ---- */

static bool v4_is_prohibited(u8 code)
{
	return code == ICMP_NET_ANO || code == ICMP_HOST_ANO ||
	       code == ICMP_PKT_FILTERED;
}

/* Copy type and code, or translate them to the nearest of the other family. */
static bool translate(u8 from, u8 to, const struct l4lb_quote *quote,
		      struct news *news)
{
	u8 unreachable = from == AF_INET ? ICMP_DEST_UNREACH :
					   ICMPV6_DEST_UNREACH;
	u8 exceeded = from == AF_INET ? ICMP_TIME_EXCEEDED : ICMPV6_TIME_EXCEED;

	if (quote->type != unreachable && quote->type != exceeded)
		return false;
	*news = (struct news){ .type = quote->type, .code = quote->code };
	if (from == to)
		return true;
	if (quote->type == exceeded)	/* the codes are the same */
		news->type = to == AF_INET ? ICMP_TIME_EXCEEDED :
					     ICMPV6_TIME_EXCEED;
	else if (to == AF_INET)
		*news = (struct news){
			.type = ICMP_DEST_UNREACH,
			.code = quote->code == ICMPV6_ADM_PROHIBITED ?
				ICMP_PKT_FILTERED : ICMP_HOST_UNREACH,
		};
	else
		*news = (struct news){
			.type = ICMPV6_DEST_UNREACH,
			.code = v4_is_prohibited(quote->code) ?
				ICMPV6_ADM_PROHIBITED : ICMPV6_ADDR_UNREACH,
		};
	return true;
}

/* ---- sending ---- */

/* Make @skb look as if its packet had just come in for this host. */
static bool become_input(struct sk_buff *skb, struct net *net, u8 was, u8 af)
{
	if (af == AF_INET)
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
	else
		memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
	if (af == was)
		return true;
	skb_dst_drop(skb);
	if (af == AF_INET) {
		struct flowi4 fl4 = { .daddr = ip_hdr(skb)->daddr };
		struct rtable *rt = ip_route_output_key(net, &fl4);

		if (IS_ERR(rt))
			return false;
		skb_dst_set(skb, &rt->dst);
	}
	skb->protocol = htons(af == AF_INET ? ETH_P_IP : ETH_P_IPV6);
	return true;
}

/* Send the error about the client's packet at @in->off in @skb, by the VIP. */
static void tell(struct sk_buff *skb, struct net *net, u8 was,
		 const struct carried *in, const struct news *news)
{
	u8 af = in->pkt.flow.af;
	struct sk_buff *packet = skb_clone(skb, GFP_ATOMIC);

	if (!packet)
		return;
	__skb_pull(packet, in->off);
	skb_reset_network_header(packet);
	if (!become_input(packet, net, was, af))
		goto free;
	if (af == AF_INET)
		icmp_send(packet, news->type, news->code, htonl(news->info));
	else
		icmpv6_send(packet, news->type, news->code, news->info);
free:
	kfree_skb(packet);
}

/* ---- entry point ---- */

/* A flow of a one-packet service has no connection; with conn-state lazy it may have none. */
static bool is_stateless(struct l4lb_net *ln, const struct l4lb_flow *flow)
{
	const struct l4lb_service *svc = l4lb_service_lookup(ln, 0, flow);

	return svc && (READ_ONCE(svc->flags) & IP_VS_SVC_F_ONEPACKET ||
		       READ_ONCE(svc->policy.conn_state) == L4LB_SERVICE_STATE_LAZY);
}

/* What an error is believed. */
enum belief {
	BELIEVE_NOTHING,
	BELIEVE_MTU,		/* of the route; the quote names no client */
	BELIEVE_ALL,		/* it quotes a packet of a connection */
};

/*
 * Routers are free to quote less than what names the client; our packets must
 * get through those, too.  Then only the route learns.
 */
static enum belief believe(const struct sk_buff *skb, struct l4lb_net *ln,
			   const struct l4lb_quote *quote, struct carried *in,
			   struct l4lb_server **server)
{
	enum l4lb_parse parse = carried_parse(skb, quote, in);
	const struct l4lb_conn *conn;

	if (parse != L4LB_PARSE_OK)
		return parse == L4LB_PARSE_BAD ? BELIEVE_MTU : BELIEVE_NOTHING;
	/* From here on only the linear part of @skb is read. */
	if (in->pkt.l4 + QUOTED_PORTS > skb_headlen(skb))
		return BELIEVE_NOTHING;
	conn = l4lb_conn_find_in(ln, &in->pkt.flow);
	if (!conn)
		return is_stateless(ln, &in->pkt.flow) ? BELIEVE_MTU :
							 BELIEVE_NOTHING;
	*server = conn->server;
	return conn->method == IP_VS_CONN_F_TUNNEL &&
	       nf_inet_addr_cmp(&conn->server->sched.addr,
				&quote->pkt.flow.daddr) &&
	       l4lb_tunnel_carries(l4lb_server_tun(conn->server),
				   &quote->pkt.flow) ?
	       BELIEVE_ALL : BELIEVE_NOTHING;
}

/* Did this host send the quoted packet, by a tunnel?  What comes first costs
 * little, since anybody may send errors.
 */
static bool is_ours(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		    struct l4lb_net *ln, const struct l4lb_quote *quote)
{
	const struct l4lb_flow *outer = &quote->pkt.flow;

	return pkt->hook == NF_INET_LOCAL_IN && outer->af == pkt->flow.af &&
	       l4lb_tunnel_known(ln, outer) &&
	       nf_inet_addr_cmp(&outer->saddr, &pkt->flow.daddr) &&
	       l4lb_icmp_checksum_ok(skb, pkt, ln);
}

void l4lb_tunnel_error(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct l4lb_net *ln, const struct l4lb_quote *quote)
{
	u8 af = pkt->flow.af;
	struct l4lb_server *server;
	struct carried in = { };
	enum belief belief;
	struct news news;

	if (!is_ours(skb, pkt, ln, quote))
		return;
	belief = believe(skb, ln, quote, &in, &server);
	if (belief == BELIEVE_NOTHING)
		return;
	if (!is_too_big(af, quote)) {
		if (belief == BELIEVE_ALL &&
		    translate(af, in.pkt.flow.af, quote, &news))
			tell(skb, ln->net, af, &in, &news);
		return;
	}
	/* Whoever guesses the addresses can send this. */
	if (belief == BELIEVE_MTU && quote->info < MTU_UNPROVEN)
		return;
	learn_mtu(skb, ln->net, af, quote);
	if (belief != BELIEVE_ALL)
		return;
	l4lb_route_flush(server);
	if (!may_fragment(skb, &in) &&
	    tell_mtu(server, in.off - quote->off, in.pkt.flow.af, &news))
		tell(skb, ln->net, af, &in, &news);
}

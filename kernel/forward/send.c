// SPDX-License-Identifier: GPL-2.0
/*
 * Steps shared by the forwarding methods, in their order:
 *
 *	route -> TTL -> MTU -> (method: rewrite) -> prepare -> send
 *
 * ICMP errors are sent before the rewrite, so they quote the packet as the
 * client sent it, except for its TTL.
 */
#include "forward/send.h"

#include <linux/netfilter.h>
#include <net/dsfield.h>
#include <net/icmp.h>
#include <net/ip.h>
#include <net/route.h>

#include "base/drop.h"
#include "conn/conntrack.h"
#include "forward/others.h"

/*
 * Policy routing (by firewall mark) can deliver packets here whose destination
 * is not an address of this host.  icmp_send() cannot send from that address.
 * With the route back to the sender it answers like a router.
 */
static void answer_as_router(struct sk_buff *skb, const struct l4lb_pkt *pkt)
{
	struct net *net = dev_net(skb->dev);
	struct flowi4 fl4 = { .daddr = pkt->flow.saddr.ip };
	struct rtable *rt;

	if (inet_addr_type(net, pkt->flow.daddr.ip) == RTN_LOCAL)
		return;
	rt = ip_route_output_key(net, &fl4);
	if (IS_ERR(rt))
		return;
	skb_dst_drop(skb);
	skb_dst_set(skb, &rt->dst);
}

/* An ICMP error to the sender. */
static void reject(struct sk_buff *skb, const struct l4lb_pkt *pkt, u8 type,
		   u8 code, u32 info)
{
	/* Locally sent packets have no device yet, but ICMPv6 needs one. */
	if (!skb->dev)
		skb->dev = skb_dst(skb)->dev;
	if (pkt->flow.af == AF_INET) {
		if (skb_rtable(skb)->rt_flags & RTCF_LOCAL)
			answer_as_router(skb, pkt);
		icmp_send(skb, type, code, htonl(info));
	} else {
		icmpv6_send(skb, type, code, info);
	}
}

void l4lb_icmp_no_port(struct sk_buff *skb, const struct l4lb_pkt *pkt)
{
	if (pkt->flow.af == AF_INET)
		reject(skb, pkt, ICMP_DEST_UNREACH, ICMP_PORT_UNREACH, 0);
	else
		reject(skb, pkt, ICMPV6_DEST_UNREACH, ICMPV6_PORT_UNREACH, 0);
}

static void no_route(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_net *ln)
{
	l4lb_drop(ln, L4LB_DROP_NO_ROUTE);
	if (pkt->flow.af == AF_INET)
		reject(skb, pkt, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH, 0);
	else
		reject(skb, pkt, ICMPV6_DEST_UNREACH, ICMPV6_ADDR_UNREACH, 0);
}

/* At FORWARD the stack has already decremented the TTL. */
static bool ttl_decrease(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			 const struct l4lb_net *ln)
{
	if (pkt->hook == NF_INET_FORWARD)
		return true;
	if (pkt->flow.af == AF_INET) {
		if (ip_hdr(skb)->ttl <= 1) {
			l4lb_drop(ln, L4LB_DROP_TTL);
			reject(skb, pkt, ICMP_TIME_EXCEEDED, ICMP_EXC_TTL, 0);
			return false;
		}
		if (skb_ensure_writable(skb, sizeof(struct iphdr)))
			goto no_memory;
		ip_decrease_ttl(ip_hdr(skb));
		return true;
	}
	if (ipv6_hdr(skb)->hop_limit <= 1) {
		l4lb_drop(ln, L4LB_DROP_TTL);
		reject(skb, pkt, ICMPV6_TIME_EXCEED, ICMPV6_EXC_HOPLIMIT, 0);
		return false;
	}
	if (skb_ensure_writable(skb, sizeof(struct ipv6hdr)))
		goto no_memory;
	ipv6_hdr(skb)->hop_limit--;
	return true;

no_memory:
	l4lb_drop(ln, L4LB_DROP_MEMORY);
	return false;
}

bool l4lb_forward_by(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_net *ln, const struct l4lb_route *rt,
		     unsigned int *verdict)
{
	*verdict = NF_DROP;
	if (IS_ERR(rt)) {
		if (PTR_ERR(rt) == -ENOMEM)
			l4lb_drop(ln, L4LB_DROP_MEMORY);
		else
			no_route(skb, pkt, ln);
		return false;
	}
	/* CHECKSUM_COMPLETE would be wrong after the changes that follow. */
	skb_forward_csum(skb);
	return rt->local || ttl_decrease(skb, pkt, ln);
}

const struct l4lb_route *l4lb_forward_route(struct sk_buff *skb,
					    const struct l4lb_pkt *pkt,
					    const struct l4lb_conn *conn,
					    unsigned int *verdict)
{
	const struct l4lb_route *rt = l4lb_route_get(conn->server,
						     conn->method);

	return l4lb_forward_by(skb, pkt, l4lb_conn_net(conn), rt, verdict) ?
	       rt : NULL;
}

static bool fits_ipv4(const struct sk_buff *skb, unsigned int mtu)
{
	if (skb->len <= mtu || !(ip_hdr(skb)->frag_off & htons(IP_DF)))
		return true;
	return skb_is_gso(skb) && skb_gso_validate_network_len(skb, mtu);
}

static bool fits_ipv6(const struct sk_buff *skb, unsigned int mtu)
{
	/* Reassembled here: it is fragmented again to the original size. */
	if (IP6CB(skb)->frag_max_size)
		return IP6CB(skb)->frag_max_size <= mtu;
	if (skb->len <= mtu)
		return true;
	return skb_is_gso(skb) && skb_gso_validate_network_len(skb, mtu);
}

bool l4lb_forward_fits(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       const struct l4lb_net *ln, unsigned int mtu)
{
	if (pkt->flow.af == AF_INET) {
		if (fits_ipv4(skb, mtu))
			return true;
		reject(skb, pkt, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, mtu);
	} else {
		if (fits_ipv6(skb, mtu))
			return true;
		reject(skb, pkt, ICMPV6_PKT_TOOBIG, 0, mtu);
	}
	l4lb_drop(ln, L4LB_DROP_TOO_BIG);
	return false;
}

void l4lb_forward_mark(struct sk_buff *skb, const struct l4lb_conn *conn,
		       bool reply)
{
	skb->ipvs_property = 1;
	if (l4lb_conn_test(conn, L4LB_CONN_TRACKED))
		l4lb_ct_alter(skb, conn, reply);
	else
		l4lb_skb_untrack(skb);
}

void l4lb_forward_prepare(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			  const struct l4lb_conn *conn,
			  const struct l4lb_route *rt)
{
	/* Early demultiplexing may have attached a socket of this host. */
	if (pkt->hook != NF_INET_LOCAL_OUT)
		skb_orphan(skb);
	skb_clear_tstamp(skb);
	skb_dst_drop(skb);
	skb_dst_set_noref(skb, rt->dst);
	l4lb_forward_mark(skb, conn, false);
}

/* Our own hooks at LOCAL_OUT let the packet pass, and what they would forget is
 * forgotten when it comes here.
 */
void l4lb_forward_send(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct net *net)
{
	struct net_device *dev = skb_dst(skb)->dev;
	u8 af = pkt->flow.af;

	if (l4lb_others_look(net, af, NF_INET_LOCAL_OUT))
		NF_HOOK(af == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6,
			NF_INET_LOCAL_OUT, net, NULL, skb, NULL, dev,
			dst_output);
	else
		dst_output(net, NULL, skb);
}

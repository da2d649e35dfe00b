// SPDX-License-Identifier: GPL-2.0
/*
 * NAT: the destination of the client's packets becomes the real server's
 * address and port, the source of its replies the VIP's.  Both pass the
 * director.
 *
 * One rewrite serves both directions, both families and every protocol with
 * ports: a descriptor says where the protocol keeps its checksum.  Checksums
 * are updated from the difference (RFC 1624; a CRC likewise), so the payload is
 * not read and a wrong checksum stays wrong.
 */
#include "forward/nat.h"

#include <linux/crc32.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <net/checksum.h>
#include <net/ip6_checksum.h>

#include "base/drop.h"
#include "base/parse.h"
#include "conn/lookup.h"
#include "forward/nat_plain.h"
#include "forward/send.h"

struct l4_desc {
	u8	len;		/* bytes of the header that must be there */
	u8	check;		/* offset of the checksum */
	bool	zero_is_none;	/* a sum of 0 means "not computed" */
	bool	crc;		/* CRC32c of header and payload alone */
};

static const struct l4_desc tcp_desc = {
	.len		= sizeof(struct tcphdr),
	.check		= offsetof(struct tcphdr, check),
};

static const struct l4_desc udp_desc = {
	.len		= sizeof(struct udphdr),
	.check		= offsetof(struct udphdr, check),
	.zero_is_none	= true,
};

static const struct l4_desc sctp_desc = {
	.len		= sizeof(struct sctphdr),
	.check		= offsetof(struct sctphdr, checksum),
	.crc		= true,
};

/* NULL: AH and ESP, which have no ports and no checksum to update. */
static const struct l4_desc *l4_desc(u8 proto)
{
	switch (proto) {
	case IPPROTO_AH:
	case IPPROTO_ESP:
		return NULL;
	case IPPROTO_TCP:
		return &tcp_desc;
	case IPPROTO_SCTP:
		return &sctp_desc;
	default:
		return &udp_desc;
	}
}

/* The new address and port of one end of a packet. */
struct endpoint {
	const union nf_inet_addr	*addr;
	__be16				port;
	bool				source;	/* else destination */
};

/*
 * Update the CRC of an SCTP packet of @len bytes after a port changed from @old
 * to @new.  A CRC is linear: the CRCs of two packets differ by the CRC, from 0,
 * of their XOR, which here is the four bytes of the ports followed by zeros.
 */
static void crc_update(struct sctphdr *sctp, unsigned int len, bool source,
		       __be16 old, __be16 new)
{
	__be16 delta[2] = { };
	u32 crc;

	if (old == new || len < sizeof(*sctp))
		return;
	delta[!source] = old ^ new;
	crc = __crc32c_le(0, (const u8 *)delta, sizeof(delta));
	crc = __crc32c_le_shift(crc, len - sizeof(delta));
	sctp->checksum ^= cpu_to_le32(crc);
}

static void l4_rewrite(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       const struct l4_desc *desc,
		       const union nf_inet_addr *old, const struct endpoint *to)
{
	const unsigned int l4 = pkt->l4;
	__sum16 *check = (__sum16 *)(skb->data + l4 + desc->check);
	__be16 *port = (__be16 *)(skb->data + l4) + !to->source;
	__be16 old_port = *port;

	*port = to->port;
	if (desc->crc) {
		/* CHECKSUM_PARTIAL: the device or the stack computes it. */
		if (skb->ip_summed != CHECKSUM_PARTIAL)
			crc_update((struct sctphdr *)(skb->data + l4),
				   skb->len - l4, to->source, old_port,
				   to->port);
		/* CHECKSUM_COMPLETE includes the old port. */
		if (skb->ip_summed == CHECKSUM_COMPLETE)
			skb->ip_summed = CHECKSUM_NONE;
		return;
	}
	/* With CHECKSUM_PARTIAL a 0 does not mean "not computed". */
	if (desc->zero_is_none && !*check && skb->ip_summed != CHECKSUM_PARTIAL)
		return;
	if (pkt->flow.af == AF_INET)
		inet_proto_csum_replace4(check, skb, old->ip, to->addr->ip,
					 true);
	else
		inet_proto_csum_replace16(check, skb, old->ip6, to->addr->ip6,
					  true);
	inet_proto_csum_replace2(check, skb, old_port, to->port, false);
	if (desc->zero_is_none && !*check)
		*check = CSUM_MANGLED_0;
}

/* Write @to's address into the IP header at @off; *@old gets the old one. */
static void l3_rewrite(struct sk_buff *skb, u8 af, unsigned int off,
		       const struct endpoint *to, union nf_inet_addr *old)
{
	if (af == AF_INET) {
		struct iphdr *iph = (struct iphdr *)(skb->data + off);
		__be32 *field = to->source ? &iph->saddr : &iph->daddr;

		old->ip = *field;
		csum_replace4(&iph->check, *field, to->addr->ip);
		*field = to->addr->ip;
	} else {
		struct ipv6hdr *iph = (struct ipv6hdr *)(skb->data + off);
		struct in6_addr *field = to->source ? &iph->saddr : &iph->daddr;

		old->in6 = *field;
		*field = to->addr->in6;
	}
}

/* Any other packet: SCTP, no ports, or a checksum that the device or the stack has a part in. */
static noinline void rewrite_odd(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				 const struct l4_desc *desc, const struct endpoint *to)
{
	union nf_inet_addr old;

	l3_rewrite(skb, pkt->flow.af, 0, to, &old);
	if (desc)
		l4_rewrite(skb, pkt, desc, &old, to);
}

static __always_inline int rewrite(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				   const struct endpoint *to)
{
	const struct l4_desc *desc = l4_desc(pkt->flow.proto);

	if (l4lb_make_writable(skb, pkt->l4 + (desc ? desc->len : 0)))
		return -ENOMEM;
	if (likely(desc && !desc->crc && l4lb_nat_is_plain(skb)))
		l4lb_nat_plain(skb->data, pkt, to->addr, to->port, to->source);
	else
		rewrite_odd(skb, pkt, desc, to);
	return 0;
}

int l4lb_nat_rewrite(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_conn *conn, bool reply)
{
	const union nf_inet_addr addr = reply ? l4lb_conn_vip(conn) :
						l4lb_conn_server(conn);
	const struct endpoint to = { &addr, reply ? conn->vport : conn->dport,
				     reply };

	return rewrite(skb, pkt, &to);
}

/* Length of the quoted packet's L4 part before it was truncated. */
static unsigned int quoted_len(const struct sk_buff *skb, u8 af,
			       unsigned int off, const struct l4lb_pkt *inner)
{
	unsigned int end = off;

	if (af == AF_INET)
		end += ntohs(((struct iphdr *)(skb->data + off))->tot_len);
	else
		end += sizeof(struct ipv6hdr) +
		       ntohs(((struct ipv6hdr *)(skb->data + off))->payload_len);
	return end > inner->l4 ? end - inner->l4 : 0;
}

/* Rewrite the packet that an ICMP error quotes.  Often only eight bytes of L4
 * are quoted; a checksum among them is updated, because some hosts verify it.
 */
static void quoted_rewrite(struct sk_buff *skb, u8 af, unsigned int off,
			   const struct l4lb_pkt *inner,
			   const struct endpoint *to)
{
	const struct l4_desc *desc = l4_desc(inner->flow.proto);
	__be16 *port = (__be16 *)(skb->data + inner->l4) + !to->source;
	__sum16 *check = (__sum16 *)(skb->data + inner->l4 + desc->check);
	__be16 old_port = *port;
	union nf_inet_addr old;
	unsigned int i;

	l3_rewrite(skb, af, off, to, &old);
	*port = to->port;
	if (inner->l4 + desc->check +
	    (desc->crc ? sizeof(__le32) : sizeof(*check)) > skb_headlen(skb) ||
	    (desc->zero_is_none && !*check))
		return;
	if (desc->crc)
		return crc_update((struct sctphdr *)(skb->data + inner->l4),
				  quoted_len(skb, af, off, inner), to->source,
				  old_port, to->port);
	csum_replace2(check, old_port, to->port);
	for (i = 0; i < (af == AF_INET ? 1 : 4); i++)
		csum_replace4(check, old.ip6[i], to->addr->ip6[i]);
	if (desc->zero_is_none && !*check)
		*check = CSUM_MANGLED_0;
}

static void icmp_checksum(struct sk_buff *skb, const struct l4lb_pkt *pkt)
{
	struct icmphdr *icmp = (struct icmphdr *)(skb->data + pkt->l4);
	unsigned int len = skb->len - pkt->l4;
	__wsum sum;

	icmp->checksum = 0;
	sum = skb_checksum(skb, pkt->l4, len, 0);
	if (pkt->flow.af == AF_INET)
		icmp->checksum = csum_fold(sum);
	else
		icmp->checksum = csum_ipv6_magic(&ipv6_hdr(skb)->saddr,
						 &ipv6_hdr(skb)->daddr, len,
						 IPPROTO_ICMPV6, sum);
	skb->ip_summed = CHECKSUM_NONE;
}

/*
 * Rewrite the ICMP error's header at @outer's end, and the quoted packet's at
 * the opposite end, because the quoted packet went the other way.
 */
static int icmp_rewrite(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			unsigned int quoted, const struct endpoint *outer)
{
	struct endpoint inner_to = *outer;
	struct l4lb_pkt inner;
	union nf_inet_addr old;

	inner_to.source = !outer->source;
	if (l4lb_parse_packet(skb, pkt->flow.af, quoted, true, &inner) !=
	    L4LB_PARSE_OK)
		return -EINVAL;
	/* The parser found the ports; a checksum may be quoted, too. */
	if (skb_ensure_writable(skb, min_t(unsigned int, skb->len,
					   inner.l4 + sizeof(struct tcphdr))))
		return -ENOMEM;
	l3_rewrite(skb, pkt->flow.af, 0, outer, &old);
	quoted_rewrite(skb, pkt->flow.af, quoted, &inner, &inner_to);
	icmp_checksum(skb, pkt);
	return 0;
}

static __always_inline int rewrite_any(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				       unsigned int quoted, const struct endpoint *to)
{
	return quoted ? icmp_rewrite(skb, pkt, quoted, to) :
			rewrite(skb, pkt, to);
}

int l4lb_nat_both(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		  unsigned int quoted, const struct l4lb_flow *to)
{
	const struct endpoint dst = { &to->daddr, to->dport, false };
	const struct endpoint src = { &to->saddr, to->sport, true };

	return rewrite_any(skb, pkt, quoted, &dst) ?:
	       rewrite_any(skb, pkt, quoted, &src);
}

/* Into what a packet of the client is translated; with full NAT both its ends. */
static __always_inline int
request_rewrite(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		const struct l4lb_conn *conn, unsigned int quoted, bool full)
{
	const union nf_inet_addr server = l4lb_conn_server(conn);
	const struct endpoint to = { &server, conn->dport, false };
	struct l4lb_flow flow;

	if (!full)
		return rewrite_any(skb, pkt, quoted, &to);
	flow = l4lb_conn_local_flow(conn);
	flow = l4lb_flow_inverse(&flow);
	return l4lb_nat_both(skb, pkt, quoted, &flow);
}

/* The real server is this host: deliver through the local stack. */
static unsigned int nat_local(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn,
			      const struct l4lb_route *rt, unsigned int quoted)
{
	const union nf_inet_addr server = l4lb_conn_server(conn);
	bool loopback = pkt->flow.af == AF_INET ?
			ipv4_is_loopback(server.ip) :
			ipv6_addr_loopback(&server.in6);

	if (loopback && pkt->hook != NF_INET_LOCAL_OUT &&
	    !(skb->dev->flags & IFF_LOOPBACK)) {
		l4lb_drop(l4lb_conn_net(conn), L4LB_DROP_MARTIAN);
		return NF_DROP;
	}
	if (request_rewrite(skb, pkt, conn, quoted, conn->method == L4LB_FULL_NAT)) {
		l4lb_drop(l4lb_conn_net(conn), L4LB_DROP_MEMORY);
		return NF_DROP;
	}
	if (pkt->hook != NF_INET_LOCAL_IN) {
		/* The packet leaves the RCU section with this route. */
		skb_dst_drop(skb);
		skb_dst_set(skb, dst_clone(rt->dst));
	} else {
		skb_orphan(skb);
	}
	l4lb_forward_mark(skb, conn, false);
	return NF_ACCEPT;
}

static __always_inline unsigned int
nat_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
	 const struct l4lb_conn *conn, unsigned int quoted, bool full)
{
	struct l4lb_net *ln = l4lb_conn_net(conn);
	const struct l4lb_route *rt;
	unsigned int verdict;

	rt = l4lb_forward_route(skb, pkt, conn, &verdict);
	if (!rt)
		return verdict;
	if (rt->local)
		return nat_local(skb, pkt, conn, rt, quoted);
	if (!l4lb_forward_fits(skb, pkt, ln, l4lb_dst_mtu(rt->dst)))
		return NF_DROP;
	if (request_rewrite(skb, pkt, conn, quoted, full)) {
		l4lb_drop(ln, L4LB_DROP_MEMORY);
		return NF_DROP;
	}
	l4lb_forward_prepare(skb, pkt, conn, rt);
	l4lb_forward_send(skb, pkt, ln->net);
	return NF_STOLEN;
}

unsigned int l4lb_nat_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   const struct l4lb_conn *conn, unsigned int quoted)
{
	return nat_xmit(skb, pkt, conn, quoted, false);
}

unsigned int l4lb_nat_xmit_full(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				const struct l4lb_conn *conn, unsigned int quoted)
{
	return nat_xmit(skb, pkt, conn, quoted, true);
}

/* The source has changed, and routing rules may depend on it.  Without such
 * rules the route depends only on the destination, which has not changed.
 */
static bool reroute(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		    struct l4lb_net *ln)
{
	struct net *net = ln->net;

	if (pkt->hook == NF_INET_LOCAL_IN ||
	    !READ_ONCE(ln->sysctl.snat_reroute) ||
	    !l4lb_net_has_rules(net, pkt->flow.af))
		return true;
	if (pkt->flow.af == AF_INET)
		return !ip_route_me_harder(net, skb->sk, skb, RTN_LOCAL);
	return !ip6_route_me_harder(net, skb->sk, skb);
}

unsigned int l4lb_nat_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			    const struct l4lb_conn *conn, unsigned int quoted)
{
	const union nf_inet_addr vip = l4lb_conn_vip(conn);
	const struct endpoint to = { &vip, conn->vport, true };
	struct l4lb_net *ln = l4lb_conn_net(conn);

	skb_forward_csum(skb);
	if (rewrite_any(skb, pkt, quoted, &to)) {
		l4lb_drop(ln, L4LB_DROP_MEMORY);
		return NF_DROP;
	}
	if (!reroute(skb, pkt, ln)) {
		l4lb_drop(ln, L4LB_DROP_NO_ROUTE);
		return NF_DROP;
	}
	l4lb_forward_mark(skb, conn, true);
	return NF_ACCEPT;
}

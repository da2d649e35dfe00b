/* SPDX-License-Identifier: GPL-2.0 */
/* NAT of headers of TCP and UDP whose checksums are all there, inline. */
#ifndef _L4LB_NAT_PLAIN_H
#define _L4LB_NAT_PLAIN_H

#include <linux/skbuff.h>
#include <net/checksum.h>

#include "conn/conn.h"
#include "forward/nat.h"

/* Is the checksum in the packet the only one that has to follow a change? */
static inline bool l4lb_nat_is_plain(const struct sk_buff *skb)
{
	return skb->ip_summed == CHECKSUM_NONE ||
	       skb->ip_summed == CHECKSUM_UNNECESSARY;
}

/* skb_ensure_writable(), mostly without a call. */
static __always_inline int l4lb_make_writable(struct sk_buff *skb, unsigned int len)
{
	return likely(len <= skb_headlen(skb) && !skb_cloned(skb)) ?
	       0 : skb_ensure_writable(skb, len);
}

static __always_inline __wsum l4lb_nat_ipv4(struct iphdr *iph, __be32 to, bool source)
{
	__be32 *addr = source ? &iph->saddr : &iph->daddr;
	__wsum diff = csum_add(~(__force __wsum)*addr, (__force __wsum)to);

	csum_replace_by_diff(&iph->check, diff);
	*addr = to;
	return diff;
}

static __always_inline __wsum l4lb_nat_ipv6(struct ipv6hdr *iph, const struct in6_addr *to,
					    bool source)
{
	struct in6_addr *addr = source ? &iph->saddr : &iph->daddr;
	__wsum diff = csum_sub(csum_partial(to, sizeof(*to), 0),
			       csum_partial(addr, sizeof(*addr), 0));

	*addr = *to;
	return diff;
}

/* Gives one end of a packet another address and port: both checksums are updated from one
 * difference, see nat.c.
 * @l3: its headers, of a frame or of an skb with l4lb_nat_is_plain()
 * @pkt: the packet, parsed
 * @source: its source, not its destination
 */
static __always_inline void l4lb_nat_plain(void *l3, const struct l4lb_pkt *pkt,
					   const union nf_inet_addr *addr, __be16 to,
					   bool source)
{
	const bool udp = pkt->flow.proto == IPPROTO_UDP;
	__sum16 *check = l3 + pkt->l4 + (udp ? offsetof(struct udphdr, check) :
					 offsetof(struct tcphdr, check));
	__be16 *port = (__be16 *)(l3 + pkt->l4) + !source;
	__wsum diff = pkt->flow.af == AF_INET ? l4lb_nat_ipv4(l3, addr->ip, source) :
						l4lb_nat_ipv6(l3, &addr->in6, source);

	diff = csum_add(diff, csum_sub((__force __wsum)to, (__force __wsum)*port));
	*port = to;
	if (udp && !*check)	/* there is none */
		return;
	csum_replace_by_diff(check, diff);
	if (udp && !*check)
		*check = CSUM_MANGLED_0;
}

/* The same for a packet of @conn: a reply comes from the VIP, another packet goes to the
 * real server.
 */
static __always_inline void l4lb_nat_headers(void *l3, const struct l4lb_pkt *pkt,
					     const struct l4lb_conn *conn, bool reply)
{
	const union nf_inet_addr addr = reply ? l4lb_conn_vip(conn) :
						l4lb_conn_server(conn);

	l4lb_nat_plain(l3, pkt, &addr, reply ? conn->vport : conn->dport, reply);
}

/* l4lb_nat_rewrite() of TCP or UDP whose headers may be written to, mostly without a
 * call.
 */
static __always_inline int l4lb_nat_rewrite_here(struct sk_buff *skb,
						 const struct l4lb_pkt *pkt,
						 const struct l4lb_conn *conn, bool reply)
{
	if (unlikely(!l4lb_nat_is_plain(skb)))
		return l4lb_nat_rewrite(skb, pkt, conn, reply);
	l4lb_nat_headers(skb->data, pkt, conn, reply);
	return 0;
}

#endif /* _L4LB_NAT_PLAIN_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * Both ends of TCP connections, without a TCP stack: a device answers a segment
 * that it should send with a segment in its receive path.
 *
 *	client  SYN ------> server
 *	        <------ SYN ACK
 *	        ACK ------>		opened
 *	        FIN ACK -->		GEN_CLIENT_CLOSES only
 *	        <------ FIN ACK
 *	        ACK ------>
 *
 * Neither end keeps state: an answer is computed from the segment alone.  So
 * both ends cost little, and have room for any number of connections.  Lost
 * segments are not sent again.
 */
#include "gen.h"

#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>

enum {
	FIN	= 0x01,
	SYN	= 0x02,
	RST	= 0x04,
	ACK	= 0x10,
	MASK	= FIN | SYN | RST | ACK,
	WINDOW	= 8192,
};

/* The headers of a TCP segment's frame. */
struct segment {
	u8		data[ETH_HLEN + sizeof(struct ipv6hdr) +
			     sizeof(struct tcphdr)];
	unsigned int	at;		/* offset of the TCP header */
	u8		flags;
	bool		ipv6;
};

static struct tcphdr *tcp_of(struct segment *s)
{
	return (void *)s->data + s->at;
}

static bool take(struct segment *s, const struct sk_buff *skb)
{
	const struct ethhdr *eth = (void *)s->data;
	const struct ipv6hdr *ip6 = (void *)s->data + ETH_HLEN;
	const struct iphdr *ip = (void *)s->data + ETH_HLEN;
	unsigned int len;
	bool plain;

	s->ipv6 = skb->protocol == htons(ETH_P_IPV6);
	s->at = ETH_HLEN + (s->ipv6 ? sizeof(*ip6) : sizeof(*ip));
	len = s->at + sizeof(struct tcphdr);
	if (skb->len < len || skb_copy_bits(skb, 0, s->data, len))
		return false;
	if (s->ipv6)
		plain = eth->h_proto == htons(ETH_P_IPV6) &&
			ip6->nexthdr == IPPROTO_TCP;
	else
		plain = eth->h_proto == htons(ETH_P_IP) && ip->ihl == 5 &&
			ip->protocol == IPPROTO_TCP;
	if (!plain)
		return false;
	s->flags = s->data[s->at + 13] & MASK;
	return true;
}

/* Turns @s into its own answer, except for the flags and the TCP checksum. */
static void turn(struct segment *s)
{
	struct ethhdr *eth = (void *)s->data;
	struct ipv6hdr *ip6 = (void *)s->data + ETH_HLEN;
	struct iphdr *ip = (void *)s->data + ETH_HLEN;
	struct tcphdr *tcp = tcp_of(s);
	__be32 seq = tcp->seq;

	swap(tcp->source, tcp->dest);
	tcp->seq = s->flags & ACK ? tcp->ack_seq : htonl(1);
	/* SYN and FIN take one sequence number each. */
	tcp->ack_seq = htonl(ntohl(seq) + !!(s->flags & (SYN | FIN)));
	tcp->doff = sizeof(*tcp) / 4;
	tcp->window = htons(WINDOW);
	ether_addr_copy(eth->h_source, eth->h_dest);
	if (s->ipv6) {
		swap(ip6->saddr, ip6->daddr);
		ip6->hop_limit = 64;
		ip6->payload_len = htons(sizeof(*tcp));
	} else {
		swap(ip->saddr, ip->daddr);
		ip->ttl = 64;
		ip->tot_len = htons(sizeof(*ip) + sizeof(*tcp));
		ip_send_check(ip);
	}
}

static void finish(struct segment *s, u8 flags)
{
	const struct ipv6hdr *ip6 = (void *)s->data + ETH_HLEN;
	const struct iphdr *ip = (void *)s->data + ETH_HLEN;
	struct tcphdr *tcp = tcp_of(s);
	__wsum sum;

	s->data[s->at + 13] = flags;
	tcp->check = 0;
	sum = csum_partial(tcp, sizeof(*tcp), 0);
	tcp->check = s->ipv6 ?
		csum_ipv6_magic(&ip6->saddr, &ip6->daddr, sizeof(*tcp),
				IPPROTO_TCP, sum) :
		csum_tcpudp_magic(ip->saddr, ip->daddr, sizeof(*tcp),
				  IPPROTO_TCP, sum);
}

static void say(struct net_device *dev, struct segment *s, u8 flags)
{
	struct ethhdr *eth = (void *)s->data;
	unsigned int len = s->at + sizeof(struct tcphdr);
	struct sk_buff *skb;

	finish(s, flags);
	ether_addr_copy(eth->h_dest, dev->dev_addr);
	skb = netdev_alloc_skb(dev, max_t(unsigned int, len, ETH_ZLEN));
	if (!skb)
		return;
	skb_put_data(skb, s->data, len);
	if (len < ETH_ZLEN)
		skb_put_zero(skb, ETH_ZLEN - len);
	skb->protocol = eth_type_trans(skb, dev);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	netif_rx(skb);
}

static void serve(struct net_device *dev, struct segment *s,
		  struct gen_talk *talk)
{
	unsigned int server = s->data[ETH_ALEN - 1] % GEN_SERVERS;

	switch (s->flags) {
	case SYN:
		turn(s);
		say(dev, s, SYN | ACK);
		break;
	case FIN | ACK:
		turn(s);
		say(dev, s, FIN | ACK);
		break;
	case ACK:
		/* The last ACK of a closed session counts here, too: sessions
		 * are counted at the client.
		 */
		talk->opened[server]++;
	}
}

static void ask(struct net_device *dev, struct segment *s,
		struct gen_talk *talk, bool closes)
{
	switch (s->flags) {
	case SYN | ACK:
		talk->answered++;
		turn(s);
		say(dev, s, ACK);
		if (closes)
			say(dev, s, FIN | ACK);
		break;
	case FIN | ACK:
		talk->closed++;
		turn(s);
		say(dev, s, ACK);
	}
}

void gen_answer(struct net_device *dev, const struct sk_buff *skb,
		enum gen_role role)
{
	struct gen_priv *priv = netdev_priv(dev);
	struct gen_talk *talk = this_cpu_ptr(priv->talk);
	struct segment s;

	if (!take(&s, skb))
		return;
	if (s.flags & RST)
		talk->refused++;
	else if (role == GEN_SERVER)
		serve(dev, &s, talk);
	else
		ask(dev, &s, talk, role == GEN_CLIENT_CLOSES);
}

void gen_talk_read(const struct net_device *dev, struct gen_talk *sum)
{
	struct gen_priv *priv = netdev_priv(dev);
	unsigned int i;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct gen_talk *one = per_cpu_ptr(priv->talk, cpu);

		for (i = 0; i < GEN_SERVERS; i++)
			sum->opened[i] += READ_ONCE(one->opened[i]);
		sum->answered += READ_ONCE(one->answered);
		sum->closed += READ_ONCE(one->closed);
		sum->refused += READ_ONCE(one->refused);
	}
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Frames from a template.  The template's checksums are computed once, and the
 * fields that differ between flows are added to them.  So a packet costs one
 * copy and a few additions, whatever its size and family.  Checksums are right
 * and marked as verified, as a network card would mark them.
 */
#include "gen.h"

#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ip6_checksum.h>

enum {
	CLIENT_BITS	= 17,		/* as in 198.18.0.0/15, see RFC 2544 */
	FIRST_PORT	= 1024,		/* ports 1024 to 33791 */
	FEW_PORTS	= 64000,	/* for each client, with @clients */
};

static void set_word(struct gen_template *t, u16 at, __be32 value)
{
	memcpy(t->data + at, &value, sizeof(value));
}

/* Returns the offset of the transport header. */
static u16 init_ipv4(struct gen_template *t, const struct gen_job *job)
{
	struct iphdr *ip = (void *)t->data + ETH_HLEN;

	*ip = (struct iphdr) {
		.version	= 4,
		.ihl		= sizeof(*ip) / 4,
		.tot_len	= htons(t->len - ETH_HLEN),
		.frag_off	= htons(IP_DF),
		.ttl		= 64,
		.protocol	= job->proto,
		.saddr		= job->src.s6_addr32[3],
		.daddr		= job->dst.s6_addr32[3],
	};
	t->ip_check = ETH_HLEN + offsetof(struct iphdr, check);
	t->client = ETH_HLEN + offsetof(struct iphdr, saddr);
	t->other = ETH_HLEN + offsetof(struct iphdr, daddr);
	return ETH_HLEN + sizeof(*ip);
}

static u16 init_ipv6(struct gen_template *t, const struct gen_job *job)
{
	struct ipv6hdr *ip = (void *)t->data + ETH_HLEN;

	*ip = (struct ipv6hdr) {
		.version	= 6,
		.payload_len	= htons(t->len - ETH_HLEN - sizeof(*ip)),
		.nexthdr	= job->proto,
		.hop_limit	= 64,
		.saddr		= job->src,
		.daddr		= job->dst,
	};
	t->client = ETH_HLEN + offsetof(struct ipv6hdr, saddr.s6_addr32[3]);
	t->other = ETH_HLEN + offsetof(struct ipv6hdr, daddr.s6_addr32[3]);
	return ETH_HLEN + sizeof(*ip);
}

static void init_transport(struct gen_template *t, const struct gen_job *job,
			   u16 at)
{
	struct udphdr *udp = (void *)t->data + at;
	struct tcphdr *tcp = (void *)t->data + at;

	if (job->proto == IPPROTO_UDP) {
		udp->source = htons(job->sport);
		udp->dest = htons(job->dport);
		udp->len = htons(t->len - at);
		t->l4_check = at + offsetof(struct udphdr, check);
		t->udp = true;
	} else {
		tcp->source = htons(job->sport);
		tcp->dest = htons(job->dport);
		tcp->seq = htonl(1);
		tcp->ack_seq = htonl(job->tcp_flags & 0x10 ? 1 : 0);
		tcp->doff = sizeof(*tcp) / 4;
		((u8 *)tcp)[13] = job->tcp_flags;
		tcp->window = htons(8192);
		t->l4_check = at + offsetof(struct tcphdr, check);
	}
	t->cport = at + (job->reply ? sizeof(__be16) : 0);
}

/* The pseudo header's sum, in which the words that differ are still 0. */
static __wsum pseudo_sum(const struct gen_template *t,
			 const struct gen_job *job, u16 at)
{
	const struct iphdr *ip = (void *)t->data + ETH_HLEN;
	const struct ipv6hdr *ip6 = (void *)t->data + ETH_HLEN;
	u16 len = t->len - at;

	if (job->family == AF_INET)
		return csum_tcpudp_nofold(ip->saddr, ip->daddr, len,
					  job->proto, 0);
	return ~csum_unfold(csum_ipv6_magic(&ip6->saddr, &ip6->daddr, len,
					    job->proto, 0));
}

/* job.c has checked @job: its size has room for the headers. */
void gen_template_init(struct gen_template *t, const struct gen_job *job)
{
	struct ethhdr *eth = (void *)t->data;
	__be16 no_port = 0;
	u16 at;

	memset(t, 0, sizeof(*t));
	t->len = job->size - ETH_FCS_LEN;
	eth->h_source[0] = 2;
	if (job->dev)
		ether_addr_copy(eth->h_dest, job->dev->dev_addr);
	if (job->family == AF_INET) {
		eth->h_proto = htons(ETH_P_IP);
		at = init_ipv4(t, job);
	} else {
		eth->h_proto = htons(ETH_P_IPV6);
		at = init_ipv6(t, job);
	}
	t->clients = job->clients;
	t->client_base = ntohl(job->src.s6_addr32[3]);
	t->other_base = ntohl(job->dst.s6_addr32[3]);
	if (job->reply) {
		swap(t->client, t->other);
		swap(t->client_base, t->other_base);
	}
	init_transport(t, job, at);
	set_word(t, t->client, 0);
	set_word(t, t->other, 0);
	memcpy(t->data + t->cport, &no_port, sizeof(no_port));
	if (t->ip_check)
		t->ip_sum = csum_partial(t->data + ETH_HLEN,
					 sizeof(struct iphdr), 0);
	t->l4_sum = csum_partial(t->data + at, t->len - at,
				 pseudo_sum(t, job, at));
}

/* A bijective hash: consecutive flow numbers give unrelated values. */
static u32 mix(u32 x)
{
	x ^= x >> 16;
	x *= 0x7feb352d;
	x ^= x >> 15;
	x *= 0x846ca68b;
	x ^= x >> 16;
	return x;
}

static __always_inline void fill(const struct gen_template *t, u8 *data,
				 u32 number, u32 other)
{
	u32 bits = mix(number);
	u32 address = t->clients ? number % t->clients :
				   bits >> (32 - CLIENT_BITS);
	u32 from = t->clients ? number / t->clients % FEW_PORTS :
				bits & (U32_MAX >> CLIENT_BITS);
	__be32 client = htonl(t->client_base + address);
	__be32 peer = htonl(t->other_base + other);
	__be16 port = htons(FIRST_PORT + from);
	__wsum sum;
	__sum16 check;

	memcpy(data, t->data, t->len);
	memcpy(data + t->client, &client, sizeof(client));
	memcpy(data + t->other, &peer, sizeof(peer));
	memcpy(data + t->cport, &port, sizeof(port));
	sum = csum_add((__force __wsum)client, (__force __wsum)peer);
	if (t->ip_check) {
		check = csum_fold(csum_add(t->ip_sum, sum));
		memcpy(data + t->ip_check, &check, sizeof(check));
	}
	sum = csum_add(sum, (__force __wsum)(u32)(__force u16)port);
	check = csum_fold(csum_add(t->l4_sum, sum));
	if (t->udp && !check)
		check = CSUM_MANGLED_0;
	memcpy(data + t->l4_check, &check, sizeof(check));
}

void gen_fill(const struct gen_template *t, u8 *data, u32 number, u32 other)
{
	fill(t, data, number, other);
}

struct sk_buff *gen_packet(const struct gen_template *t, struct net_device *dev,
			   u32 number, u32 other)
{
	struct sk_buff *skb = netdev_alloc_skb(dev, t->len);

	if (unlikely(!skb))
		return NULL;
	fill(t, skb_put(skb, t->len), number, other);
	if (dev)
		skb->protocol = eth_type_trans(skb, dev);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	return skb;
}

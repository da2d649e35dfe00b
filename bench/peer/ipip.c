// SPDX-License-Identifier: GPL-2.0
/*
 * An XDP load balancer to compare l4lb with: it does what the best known ones do for a
 * packet of TCP or UDP over IPv4, and no more.
 *
 *	headers -> VIP -> known flow? its real server : the ring's -> IPIP -> next hop
 *
 * It has no health, weights, states, timers, replies, statistics of real servers, or
 * protection against floods, and the way to a real server is in a map.  All of these
 * would cost it more.  What it does not understand it passes.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "ipip.h"

#define OUTER_SOURCE	bpf_htonl(0xac100000)	/* 172.16.0.0/16 */
#define GOLDEN		0x9e3779b97f4a7c15ULL

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PEER_VIPS);
	__type(key, struct peer_vip);
	__type(value, __u32);
} vips SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PEER_FLOWS);
	__type(key, struct peer_flow);
	__type(value, __u32);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PEER_VIPS * PEER_RING);
	__type(key, __u32);
	__type(value, __u32);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PEER_REALS);
	__type(key, __u32);
	__type(value, struct peer_real);
} reals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PEER_VIPS);
	__type(key, __u32);
	__type(value, struct peer_count);
} counts SEC(".maps");

/* Fills @flow; false: the packet is not for us.  @opens: it begins a TCP connection. */
static __always_inline int parse(const struct xdp_md *ctx, struct peer_flow *flow, int *opens)
{
	const void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const struct iphdr *ip = (void *)(eth + 1);
	const struct tcphdr *tcp = (void *)(ip + 1);

	/* The ports are at the same place in both protocols. */
	if ((void *)tcp + 8 > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 ||
	    ip->frag_off & bpf_htons(0x3fff) || ip->ttl <= 1)
		return 0;
	*opens = 0;
	if (ip->protocol == IPPROTO_TCP) {
		if ((void *)(tcp + 1) > end)
			return 0;
		*opens = tcp->syn && !tcp->ack;
	} else if (ip->protocol != IPPROTO_UDP) {
		return 0;
	}
	*flow = (struct peer_flow) {
		.src = ip->saddr, .dst = ip->daddr, .sport = tcp->source, .dport = tcp->dest,
		.proto = ip->protocol,
	};
	return 1;
}

/* A slot of the ring from the client's address and port. */
static __always_inline __u32 slot_of(const struct peer_flow *flow)
{
	__u64 x = ((__u64)flow->src << 16 | flow->sport) * GOLDEN;

	x ^= x >> 32;
	x *= GOLDEN;
	return (x >> 32) % PEER_RING;
}

static __always_inline const struct peer_real *real_of(const struct peer_flow *flow, __u32 vip,
						       int opens)
{
	__u32 *chosen = opens ? NULL : bpf_map_lookup_elem(&flows, flow), at;

	if (!chosen) {
		at = vip * PEER_RING + slot_of(flow);
		chosen = bpf_map_lookup_elem(&ring, &at);
		if (!chosen)
			return NULL;
		bpf_map_update_elem(&flows, flow, chosen, BPF_ANY);
	}
	return bpf_map_lookup_elem(&reals, chosen);
}

static __always_inline __u16 checksum(const struct iphdr *ip)
{
	const __u16 *word = (const void *)ip;
	__u32 sum = 0;
	int i;

#pragma unroll
	for (i = 0; i < sizeof(*ip) / 2; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Puts an IPIP header before the packet.  Its source depends on the flow, so that the real
 * server's card spreads them over its queues.
 */
static __always_inline int wrap(struct xdp_md *ctx, const struct peer_flow *flow,
				const struct peer_real *real)
{
	struct ethhdr *eth, *old;
	struct iphdr *ip;
	void *end;

	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(*ip)))
		return 0;
	eth = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	ip = (void *)(eth + 1);
	old = (void *)eth + sizeof(*ip);
	if ((void *)(ip + 1) + sizeof(*ip) > end)
		return 0;
	/* This end's address was the destination. */
	__builtin_memcpy(eth->h_source, old->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, real->mac, ETH_ALEN);
	eth->h_proto = bpf_htons(ETH_P_IP);
	*ip = (struct iphdr) {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_IPIP,
		.tos = ip[1].tos,
		.tot_len = bpf_htons(bpf_ntohs(ip[1].tot_len) + sizeof(*ip)),
		.saddr = OUTER_SOURCE | ((flow->src ^ flow->sport) & bpf_htonl(0xffff)),
		.daddr = real->address,
	};
	ip->check = checksum(ip);
	return 1;
}

SEC("xdp")
int balance(struct xdp_md *ctx)
{
	const struct peer_real *real;
	struct peer_count *count;
	struct peer_flow flow;
	struct peer_vip key;
	__u32 *vip, number;
	int opens;

	if (!parse(ctx, &flow, &opens))
		return XDP_PASS;
	key = (struct peer_vip) { flow.dst, flow.dport, flow.proto };
	vip = bpf_map_lookup_elem(&vips, &key);
	if (!vip)
		return XDP_PASS;
	number = *vip;
	real = real_of(&flow, number, opens);
	count = bpf_map_lookup_elem(&counts, &number);
	if (!real || !real->ifindex || !count)
		return XDP_PASS;
	count->packets++;
	count->bytes += ctx->data_end - ctx->data;
	if (!wrap(ctx, &flow, real))
		return XDP_DROP;
	return bpf_redirect(real->ifindex, 0);
}

char _license[] SEC("license") = "GPL";

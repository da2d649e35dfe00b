// SPDX-License-Identifier: GPL-2.0
/*
 * Rendezvous hashing by the client's address: of all real servers the one whose hash
 * together with the client's is the highest.  Directors that have the same servers
 * choose the same, whatever the order of adding; when one goes, only its clients move.
 *
 *	a	a secret number, the same on all directors
 *
 * Source: Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
 * 1998.  Weights are not looked at but for 0.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../l4lb_bpf.h"

#define SERVERS	64	/* it looks at these, the first ones */

static __u32 mix(__u32 hash, __u32 word)
{
	hash = (hash ^ word) * 0x9e3779b1;
	return hash ^ hash >> 15;
}

SEC("socket")
int pick(struct __sk_buff *skb)
{
	struct l4lb_bpf_server server;
	struct l4lb_bpf_flow flow;
	__u32 at = sizeof(flow), client;
	__u64 hash, highest = 0;
	int i;

	if (bpf_skb_load_bytes(skb, 0, &flow, sizeof(flow)))
		return -1;
	client = flow.option[0];
	for (i = 0; i < 4; i++)
		client = mix(client, flow.saddr[i]);
	for (i = 0; i < SERVERS && i < flow.servers; i++, at += flow.server_size) {
		if (bpf_skb_load_bytes(skb, at, &server, sizeof(server)))
			break;
		if (!server.usable)
			continue;
		/* With its place, from 1: one number is easier for the verifier. */
		hash = (__u64)mix(mix(client, server.id), 0x5bd1e995) << 8 | (i + 1);
		if (hash > highest)
			highest = hash;
	}
	return (int)(highest & 255) - 1;
}

char _license[] SEC("license") = "GPL";

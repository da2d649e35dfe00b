// SPDX-License-Identifier: GPL-2.0
/*
 * Chooses as scheduler wlc: the real server with the fewest connections for its weight,
 * where an active one counts as much as 257 others; of equals the newest.  See README.md.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../l4lb_bpf.h"

#define SERVERS	64	/* it looks at these, the first ones */

SEC("socket")
int pick(struct __sk_buff *skb)
{
	__u64 load, least = 1, weight = 0;	/* infinite */
	struct l4lb_bpf_server server;
	struct l4lb_bpf_flow flow;
	__u32 at = sizeof(flow);
	int i, best = -1;

	if (bpf_skb_load_bytes(skb, 0, &flow, sizeof(flow)))
		return -1;
	for (i = 0; i < SERVERS && i < flow.servers; i++, at += flow.server_size) {
		if (bpf_skb_load_bytes(skb, at, &server, sizeof(server)))
			break;
		load = ((__u64)server.active << 8) + server.total;
		if (!server.usable || load * weight > least * server.weight)
			continue;
		least = load;
		weight = server.weight;
		best = i;
	}
	return best;
}

char _license[] SEC("license") = "GPL";

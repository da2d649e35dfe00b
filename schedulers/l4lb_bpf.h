/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a scheduler in BPF reads, see schedulers/bpf/README.md.
 *
 * A program of type "socket filter" reads one struct l4lb_bpf_flow at 0, and
 * .servers times struct l4lb_bpf_server behind it, with bpf_skb_load_bytes(), and
 * returns the index of a real server.  Numbers are in host order unless noted.
 * Later versions only add at the end of struct l4lb_bpf_server: its size is
 * .server_size.
 *
 * An index means nothing to the next call: real servers come and go, and those that
 * start slowly may be missing.  What a program remembers of one it keeps by .id.
 */
#ifndef _L4LB_BPF_H
#define _L4LB_BPF_H

#include <linux/types.h>

#define L4LB_BPF_OPTIONS	8
#define L4LB_BPF_SERVERS_MAX	1024

/**
 * struct l4lb_bpf_flow - the new flow
 * @servers: number of real servers, 0 to %L4LB_BPF_SERVERS_MAX
 * @server_size: bytes from one struct l4lb_bpf_server to the next
 * @family: 2: IPv4; 10: IPv6
 * @protocol: 6: TCP; 17: UDP; 132: SCTP
 * @sport: the client's port, network order; 0 without ports
 * @dport: the port that the client asked for, network order
 * @saddr: the client's address, network order; an IPv4 address is in the first word
 * @daddr: the address that the client asked for, likewise
 * @option: the service's options a to h
 */
struct l4lb_bpf_flow {
	__u32	servers;
	__u16	server_size;
	__u8	family;
	__u8	protocol;
	__be16	sport;
	__be16	dport;
	__be32	saddr[4];
	__be32	daddr[4];
	__u32	option[L4LB_BPF_OPTIONS];
};

/**
 * struct l4lb_bpf_server - a real server, in the order of adding
 * @weight: 0 to 2^31-1
 * @usable: 1: it may get the flow; 0: weight 0, or past its upper threshold
 * @active: its active connections
 * @total: all of its connections
 * @latency: the average of its answers in microseconds, with "latency on"; 0: not known
 * @id: a number made of address and port, the same on all directors
 */
struct l4lb_bpf_server {
	__u32	weight;
	__u32	usable;
	__u32	active;
	__u32	total;
	__u32	latency;
	__u32	id;
};

#endif /* _L4LB_BPF_H */

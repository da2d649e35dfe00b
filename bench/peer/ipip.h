/* SPDX-License-Identifier: GPL-2.0 */
/* What ipip.c and measure/peer.py agree on: the maps' keys and values. */
#ifndef _PEER_IPIP_H
#define _PEER_IPIP_H

#include <linux/types.h>

enum {
	PEER_VIPS	= 64,
	PEER_REALS	= 4096,
	PEER_RING	= 65537,	/* slots for each VIP: a prime number */
	PEER_FLOWS	= 1 << 18,
};

struct peer_vip {
	__be32	address;
	__be16	port;
	__u8	proto;
	__u8	zero;
};

struct peer_flow {
	__be32	src;
	__be32	dst;
	__be16	sport;
	__be16	dport;
	__u8	proto;
	__u8	zero[3];
};

/* @ifindex and @mac: the way to it */
struct peer_real {
	__be32	address;
	__u32	ifindex;
	__u8	mac[6];
	__u8	zero[2];
};

struct peer_count {
	__u64	packets;
	__u64	bytes;
};

#endif /* _PEER_IPIP_H */

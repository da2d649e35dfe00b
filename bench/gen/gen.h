/* SPDX-License-Identifier: GPL-2.0 */
/*
 * l4lb_gen: packets for benchmarks.
 *
 *	/proc/l4lb_gen: a job is written, and runs until it is done
 *	   |
 *	   v  built from a template, one flow after the other in random order
 *	[gen0] ---> receive path, the director ---> [srv0]
 *	                                               |
 *	                       counted, a sample kept, freed: the sink
 *
 * A device of kind l4lb_gen is source and sink at once.  Without @rate, a
 * packet's whole path is one call in the process that wrote the job.  So when
 * a job is done no packet is in flight: those missing at the sink were lost.
 */
#ifndef _L4LB_GEN_H
#define _L4LB_GEN_H

#include <linux/if_ether.h>
#include <linux/in6.h>
#include <linux/netdevice.h>
#include <net/xdp.h>

enum {
	GEN_MIN_FRAME	= ETH_ZLEN,		/* without the FCS */
	GEN_MAX_FRAME	= ETH_FRAME_LEN,
	GEN_SAMPLE	= 160,			/* bytes kept of a packet */
	GEN_BATCH	= 64,			/* packets per NAPI-like batch */
};

/**
 * struct gen_job - what to send
 * @dev: its receive path gets the packets; NULL: they are built and freed
 * @family: AF_INET or AF_INET6
 * @proto: IPPROTO_UDP or IPPROTO_TCP
 * @src: source address; IPv4 in the last word
 * @dst: destination address, same form
 * @tcp_flags: byte 13 of the TCP header
 * @size: bytes of the frame, FCS included
 * @sport: source port, host order
 * @dport: destination port, host order
 * @reply: 1: the client is @dst; else it is @src
 * @random: 1: @count packets of random flows; 0: one packet a flow, in turn
 * @flows: number of flows
 * @first: number of the first flow
 * @services: number of addresses at the other end, which flows use in turn
 * @count: number of packets with @random
 * @start: monotonic time to begin at, in ns; 0: at once
 * @seed: of the random order
 * @clients: number of client addresses from @src on, used in turn; 0: see below
 * @rate: packets a second: a timer interrupt, at most one in 200 us, puts them
 *	into the CPU's backlog queue, which drops them when it is full; 0: one
 *	after the other, as fast as the director takes them
 * @turns: 1: call cpu_relax() after each packet, so that an emulator that runs
 *	the CPUs in turn switches to the next one
 *
 * The last 17 bits of the client's address and its port are computed from the
 * flow's number: a list of flows would compete for the cache.
 */
struct gen_job {
	struct net_device	*dev;
	u8			family;
	u8			proto;
	struct in6_addr		src;
	struct in6_addr		dst;
	/* All u64, because one table in job.c parses them. */
	u64			tcp_flags;
	u64			size;
	u64			sport;
	u64			dport;
	u64			reply;
	u64			random;
	u64			flows;
	u64			first;
	u64			services;
	u64			count;
	u64			start;
	u64			seed;
	u64			clients;
	u64			rate;
	u64			turns;
};

/**
 * struct gen_template - a frame without the fields that differ between flows
 * @len: bytes of the frame without the FCS
 * @client: offset of the last word of the client's address
 * @other: offset of the last word of the other end's address
 * @cport: offset of the client's port
 * @ip_check: offset of the IPv4 header's checksum, 0 with IPv6
 * @l4_check: offset of the transport checksum
 * @clients: number of client addresses, see struct gen_job
 * @udp: a checksum of 0 is written as 0xffff
 * @client_base: last word of the first client's address
 * @other_base: last word of the other end's first address
 * @ip_sum: sum over the IPv4 header with the differing fields 0
 * @l4_sum: the same over pseudo header, header and payload
 * @data: the frame
 */
struct gen_template {
	u16	len;
	u16	client;
	u16	other;
	u16	cport;
	u16	ip_check;
	u16	l4_check;
	u32	clients;
	bool	udp;
	u32	client_base;
	u32	other_base;
	__wsum	ip_sum;
	__wsum	l4_sum;
	u8	data[GEN_MAX_FRAME];
};

/* packet.c */
void gen_template_init(struct gen_template *t, const struct gen_job *job);
/* A packet of flow @number, or NULL without memory.  Call it with BH off. */
struct sk_buff *gen_packet(const struct gen_template *t, struct net_device *dev,
			   u32 number, u32 other);

/* The same as a frame, to @data, which has room for @t->len bytes. */
void gen_fill(const struct gen_template *t, u8 *data, u32 number, u32 other);

/* device.c: a sink's counts since gen_sink_zero(); RTNL protects reading */
struct gen_sink {
	u64	packets;
	u64	bytes;		/* from the Ethernet header on */
	u32	sample_len;
	u8	sample[GEN_SAMPLE];
};

/* How a device answers the TCP segments that it should send, see answer.c. */
enum gen_role {
	GEN_SINK,		/* not at all */
	GEN_SERVER,
	GEN_CLIENT,		/* opens connections */
	GEN_CLIENT_CLOSES,	/* opens and closes them at once */
};

enum { GEN_SERVERS = 16 };	/* told apart by the last digit of their MAC */

/* Segments that a device with such a role has got. */
struct gen_talk {
	u64	opened[GEN_SERVERS];	/* server: ACK to its SYN ACK */
	u64	answered;		/* client: SYN ACK */
	u64	closed;			/* client: FIN ACK */
	u64	refused;		/* RST */
};

struct gen_priv {
	struct gen_sink __percpu	*sink;
	struct gen_talk __percpu	*talk;
	enum gen_role			role;
	struct page_pool		*pool;	/* of frames for XDP */
	struct xdp_rxq_info		rxq;
	struct bpf_prog			*prog;	/* written under RTNL */
};

/* Call it with BH off; it does not consume @skb. */
void gen_answer(struct net_device *dev, const struct sk_buff *skb,
		enum gen_role role);
void gen_talk_read(const struct net_device *dev, struct gen_talk *sum);

void gen_sink_count(struct gen_priv *priv, const void *data, unsigned int len);

/* xdp.c */
int gen_xdp_init(struct net_device *dev);
void gen_xdp_exit(struct net_device *dev);
int gen_bpf(struct net_device *dev, struct netdev_bpf *command);
int gen_xdp_xmit(struct net_device *dev, int n, struct xdp_frame **frames,
		 u32 flags);
/* Is a program attached to a device of this kind? */
bool gen_has_program(const struct net_device *dev);
/* A frame of flow @number, as a card receives it; false: no memory. */
bool gen_xdp_frame(struct net_device *dev, const struct gen_template *t,
		   u32 number, u32 other);

bool gen_is_ours(const struct net_device *dev);
void gen_sink_read(const struct net_device *dev, struct gen_sink *sum);
void gen_sink_zero(struct net_device *dev);
int gen_device_init(void);
void gen_device_exit(void);

/* job.c */
int gen_job_init(void);
void gen_job_exit(void);

#endif /* _L4LB_GEN_H */

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
 * Devices of kind l4lb_gen are source and sink at once.  All of a packet's way
 * is one call in the context of who wrote the job, so that a job that is done
 * has nothing under way, and what its sink lacks was lost.
 */
#ifndef _L4LB_GEN_H
#define _L4LB_GEN_H

#include <linux/if_ether.h>
#include <linux/in6.h>
#include <linux/netdevice.h>

enum {
	GEN_MIN_FRAME	= ETH_ZLEN,		/* without its check sequence */
	GEN_MAX_FRAME	= ETH_FRAME_LEN,
	GEN_SAMPLE	= 160,			/* bytes kept of a packet */
	GEN_BATCH	= 64,			/* packets with BH off, as NAPI */
};

/**
 * struct gen_job - what to send
 * @dev: into whose receive path; NULL: nowhere, packets are built and freed
 * @family: AF_INET or AF_INET6
 * @proto: IPPROTO_UDP or IPPROTO_TCP
 * @src: source address; IPv4 in the last word
 * @dst: destination address, same form
 * @tcp_flags: byte 13 of the TCP header
 * @size: of the frame with its check sequence, bytes
 * @sport: source port, host order
 * @dport: destination port, host order
 * @reply: 1: the client is @dst; else it is @src
 * @random: 1: flows in random order, @count packets; else each once, in turn
 * @flows: how many there are
 * @first: number of the first
 * @services: the other end's address has so many values, one up for each flow
 * @count: of packets in random order
 * @start: monotonic time to begin at, in ns; 0: at once
 * @seed: of the order
 * @clients: client addresses, from @src on, in turn; 0: as below
 * @rate: packets a second, given to @dev by a timer's interrupt, at most one in
 *	200 us: they wait in the queue of the CPU, and are lost if that is full;
 *	0: one after the other, as fast as the director takes them
 * @turns: 1: says that it is idle after each packet, so that an emulator that
 *	runs CPUs one after the other goes on to the next
 *
 * The client's address (its last 17 bits) and port follow from the flow's
 * number, so that no list of flows competes for the cache.
 */
struct gen_job {
	struct net_device	*dev;
	u8			family;
	u8			proto;
	struct in6_addr		src;
	struct in6_addr		dst;
	/* One table in job.c reads all of these. */
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
 * struct gen_template - a frame but for the fields that differ between flows
 * @len: of the frame, without its check sequence
 * @client: offset of the last word of the client's address
 * @other: offset of the last word of the other end's address
 * @cport: offset of the client's port
 * @ip_check: offset of the IPv4 header's checksum, 0 with IPv6
 * @l4_check: offset of the transport checksum
 * @clients: their number, see struct gen_job
 * @udp: a checksum of 0 is written as 0xffff
 * @client_base: last word of the client's address, for bits that are 0
 * @other_base: last word of the other end's address, of its first value
 * @ip_sum: of the IPv4 header with those fields 0
 * @l4_sum: of pseudo header, header and payload with those fields 0
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
/* A packet of flow @number, or NULL; BH off. */
struct sk_buff *gen_packet(const struct gen_template *t, struct net_device *dev,
			   u32 number, u32 other);

/* device.c: what a sink has counted since gen_sink_zero(); RTNL held */
struct gen_sink {
	u64	packets;
	u64	bytes;		/* from the Ethernet header on */
	u32	sample_len;
	u8	sample[GEN_SAMPLE];
};

/* What a device does with TCP that it is given to send, see answer.c. */
enum gen_role {
	GEN_SINK,		/* nothing */
	GEN_SERVER,
	GEN_CLIENT,		/* opens */
	GEN_CLIENT_CLOSES,	/* and closes at once */
};

enum { GEN_SERVERS = 16 };	/* by the last digit of their link address */

/* What those have seen. */
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
};

/* BH off; @skb stays the caller's. */
void gen_answer(struct net_device *dev, const struct sk_buff *skb,
		enum gen_role role);
void gen_talk_read(const struct net_device *dev, struct gen_talk *sum);

bool gen_is_ours(const struct net_device *dev);
void gen_sink_read(const struct net_device *dev, struct gen_sink *sum);
void gen_sink_zero(struct net_device *dev);
int gen_device_init(void);
void gen_device_exit(void);

/* job.c */
int gen_job_init(void);
void gen_job_exit(void);

#endif /* _L4LB_GEN_H */

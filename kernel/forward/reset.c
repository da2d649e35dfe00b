// SPDX-License-Identifier: GPL-2.0
/*
 * Resets: a TCP RST or SCTP ABORT that both ends of a connection accept.
 *
 * A host accepts a RST only with the sequence number it expects next.  A packet
 * of the client has the numbers for both ends: the server expects the sequence
 * number after it, the client expects the number it acknowledges.  So each
 * connection stores two words, and replies, which with direct routing and
 * tunnels are never seen, are not needed.  SCTP needs one word: the
 * verification tag of the client's packets, which the client accepts with the T
 * bit set.
 *
 * The client's reset has the VIP as its source.  The server's has the client as
 * its source and is sent by the connection's forwarding method.
 */
#include "forward/reset.h"

#include <linux/netfilter.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/route.h>
#include <net/sctp/checksum.h>

#include "conn/conntrack.h"
#include "conn/lookup.h"
#include "conn/state.h"
#include "forward/forward.h"
#include "forward/send.h"

/* ---- noting sequence numbers ---- */

static void note_tcp(struct l4lb_conn *conn, const struct sk_buff *skb,
		     const struct l4lb_pkt *pkt, unsigned int len)
{
	const struct tcphdr *th;
	unsigned int head;
	struct tcphdr _th;
	u32 seq, ack;

	th = skb_header_pointer(skb, pkt->l4, sizeof(_th), &_th);
	if (!th || th->rst)
		return;
	/* A SYN starts new numbers, known from the first ACK on. */
	if (th->syn || !th->ack) {
		if (th->syn)
			l4lb_conn_clear(conn, L4LB_CONN_NOTED);
		return;
	}
	head = pkt->l4 + th->doff * 4;
	if (head > len)
		return;
	seq = ntohl(th->seq) + len - head + th->fin;
	ack = ntohl(th->ack_seq);
	/* Never go back: a keep-alive's sequence number is one too low. */
	if (!l4lb_conn_test_and_set(conn, L4LB_CONN_NOTED)) {
		conn->seq = seq;
		conn->ack = ack;
		return;
	}
	if (after(seq, conn->seq))
		conn->seq = seq;
	if (after(ack, conn->ack))
		conn->ack = ack;
}

/* An INIT is sent with tag 0, which is not noted. */
static void note_sctp(struct l4lb_conn *conn, const struct sk_buff *skb,
		      const struct l4lb_pkt *pkt)
{
	const struct sctphdr *sh;
	struct sctphdr _sh;

	sh = skb_header_pointer(skb, pkt->l4, sizeof(_sh), &_sh);
	if (!sh || !sh->vtag)
		return;
	conn->seq = ntohl(sh->vtag);
	l4lb_conn_set(conn, L4LB_CONN_NOTED);
}

/**
 * l4lb_reset_note() - remember the numbers that a reset needs
 * @conn: the connection
 * @skb: a packet of its client, not yet rewritten
 * @pkt: the packet, parsed
 * @len: the length of the IP packet in bytes: at ingress, padding may follow it
 *
 * Context: RCU, BH off.
 */
void l4lb_reset_note(struct l4lb_conn *conn, const struct sk_buff *skb,
		     const struct l4lb_pkt *pkt, unsigned int len)
{
	if (l4lb_conn_test(conn, L4LB_CONN_ONE_PACKET))
		return;
	spin_lock_bh(l4lb_conn_lock(conn));
	/* In a dead connection the RCU head overlays these fields. */
	if (l4lb_conn_test(conn, L4LB_CONN_DEAD))
		goto unlock;
	if (pkt->flow.proto == IPPROTO_TCP)
		note_tcp(conn, skb, pkt, len);
	else if (pkt->flow.proto == IPPROTO_SCTP)
		note_sctp(conn, skb, pkt);
unlock:
	spin_unlock_bh(l4lb_conn_lock(conn));
}

/* Read the noted numbers.  False: there are none, or @conn is dead. */
static bool noted(const struct l4lb_conn *conn, u32 *seq, u32 *ack)
{
	bool known;

	spin_lock_bh(l4lb_conn_lock(conn));
	known = l4lb_conn_test(conn, L4LB_CONN_NOTED) &&
		!l4lb_conn_test(conn, L4LB_CONN_DEAD);
	if (known) {
		*seq = conn->seq;
		*ack = conn->ack;
	}
	spin_unlock_bh(l4lb_conn_lock(conn));
	return known;
}

/* ---- packets ---- */

static unsigned int ip_len(const struct l4lb_flow *flow)
{
	return flow->af == AF_INET ? sizeof(struct iphdr) :
				     sizeof(struct ipv6hdr);
}

/* A new packet: an IP header, and room for @len bytes that the caller adds. */
static struct sk_buff *packet_new(const struct l4lb_flow *flow,
				  unsigned int len)
{
	struct sk_buff *skb;

	skb = alloc_skb(MAX_HEADER + ip_len(flow) + len, GFP_ATOMIC);
	if (!skb)
		return NULL;
	skb_reserve(skb, MAX_HEADER);
	skb_reset_network_header(skb);
	skb_put_zero(skb, ip_len(flow));
	skb_set_transport_header(skb, ip_len(flow));
	if (flow->af == AF_INET) {
		struct iphdr *iph = ip_hdr(skb);

		skb->protocol = htons(ETH_P_IP);
		iph->version = 4;
		iph->ihl = sizeof(*iph) / 4;
		iph->tot_len = htons(sizeof(*iph) + len);
		iph->frag_off = htons(IP_DF);
		iph->ttl = IPDEFTTL;
		iph->protocol = flow->proto;
		iph->saddr = flow->saddr.ip;
		iph->daddr = flow->daddr.ip;
		ip_send_check(iph);
	} else {
		struct ipv6hdr *iph = ipv6_hdr(skb);

		skb->protocol = htons(ETH_P_IPV6);
		iph->version = 6;
		iph->payload_len = htons(len);
		iph->nexthdr = flow->proto;
		iph->hop_limit = IPDEFTTL;
		iph->saddr = flow->saddr.in6;
		iph->daddr = flow->daddr.in6;
	}
	return skb;
}

static struct sk_buff *rst_new(const struct l4lb_flow *flow, u32 seq, u32 ack)
{
	struct sk_buff *skb = packet_new(flow, sizeof(struct tcphdr));
	struct tcphdr *th;
	__wsum sum;

	if (!skb)
		return NULL;
	th = skb_put_zero(skb, sizeof(*th));
	th->source = flow->sport;
	th->dest = flow->dport;
	th->seq = htonl(seq);
	th->ack_seq = htonl(ack);
	th->doff = sizeof(*th) / 4;
	th->rst = 1;
	th->ack = 1;
	sum = csum_partial(th, sizeof(*th), 0);
	if (flow->af == AF_INET)
		th->check = csum_tcpudp_magic(flow->saddr.ip, flow->daddr.ip,
					      sizeof(*th), IPPROTO_TCP, sum);
	else
		th->check = csum_ipv6_magic(&flow->saddr.in6,
					    &flow->daddr.in6, sizeof(*th),
					    IPPROTO_TCP, sum);
	return skb;
}

/* @reflected: @tag is the one the receiver sends, not the one it expects. */
static struct sk_buff *abort_new(const struct l4lb_flow *flow, u32 tag,
				 bool reflected)
{
	struct {
		struct sctphdr		head;
		struct sctp_chunkhdr	chunk;
	} *abort;
	struct sk_buff *skb = packet_new(flow, sizeof(*abort));

	if (!skb)
		return NULL;
	abort = skb_put_zero(skb, sizeof(*abort));
	abort->head.source = flow->sport;
	abort->head.dest = flow->dport;
	abort->head.vtag = htonl(tag);
	abort->chunk.type = SCTP_CID_ABORT;
	abort->chunk.flags = reflected ? SCTP_CHUNK_FLAG_T : 0;
	abort->chunk.length = htons(sizeof(abort->chunk));
	abort->head.checksum = sctp_compute_cksum(skb, ip_len(flow));
	return skb;
}

/* Route a packet made here; its source need not be an address of this host. */
static bool route_set(struct sk_buff *skb, const struct l4lb_flow *flow,
		      struct net *net, u32 mark)
{
	if (flow->af == AF_INET) {
		struct flowi4 fl4 = {
			.saddr		= flow->saddr.ip,
			.daddr		= flow->daddr.ip,
			.flowi4_mark	= mark,
			.flowi4_proto	= flow->proto,
			.flowi4_flags	= FLOWI_FLAG_ANYSRC,
		};
		struct rtable *rt = ip_route_output_key(net, &fl4);

		if (IS_ERR(rt))
			return false;
		skb_dst_set(skb, &rt->dst);
	} else {
		struct flowi6 fl6 = {
			.saddr		= flow->saddr.in6,
			.daddr		= flow->daddr.in6,
			.flowi6_mark	= mark,
			.flowi6_proto	= flow->proto,
			.flowi6_flags	= FLOWI_FLAG_ANYSRC,
		};
		struct dst_entry *dst = ip6_route_output(net, NULL, &fl6);

		skb_dst_set(skb, dst);
		if (dst->error)
			return false;
	}
	return true;
}

static void send_to_client(struct sk_buff *skb, const struct l4lb_flow *flow,
			   struct net *net)
{
	if (!skb)
		return;
	if (!route_set(skb, flow, net, 0)) {
		kfree_skb(skb);
		return;
	}
	skb->ipvs_property = 1;
	l4lb_skb_untrack(skb);
	if (flow->af == AF_INET)
		ip_local_out(net, NULL, skb);
	else
		ip6_local_out(net, NULL, skb);
}

/* Forwarded as if a process of this host had sent it to the VIP. */
static void send_to_server(struct sk_buff *skb, const struct l4lb_flow *flow,
			   const struct l4lb_conn *conn)
{
	struct l4lb_pkt pkt = {
		.flow	= *flow,
		.l4	= ip_len(flow),
		.hook	= NF_INET_LOCAL_OUT,
	};
	struct net *net = l4lb_conn_net(conn)->net;
	unsigned int verdict = NF_DROP;

	if (!skb)
		return;
	if (route_set(skb, flow, net, l4lb_conn_fwmark(conn)))
		verdict = l4lb_forward(skb, &pkt, conn, 0);
	if (verdict == NF_ACCEPT)
		dst_output(net, NULL, skb);	/* server is this host */
	else if (verdict == NF_DROP)
		kfree_skb(skb);
}

/**
 * l4lb_reset_both() - tell client and server that a connection is over
 * @conn: the connection, not yet killed
 *
 * Sends nothing if no packet was noted.  Failures to send are ignored.
 *
 * Context: RCU, BH off.
 */
void l4lb_reset_both(struct l4lb_conn *conn)
{
	const struct l4lb_flow in = l4lb_conn_flow(conn);
	struct l4lb_flow out = l4lb_flow_inverse(&in);
	struct net *net = l4lb_conn_net(conn)->net;
	u32 seq, ack;

	if (!noted(conn, &seq, &ack))
		return;
	if (in.proto == IPPROTO_TCP) {
		send_to_client(rst_new(&out, ack, seq), &out, net);
		send_to_server(rst_new(&in, seq, ack), &in, conn);
	} else {
		send_to_client(abort_new(&out, seq, true), &out, net);
		send_to_server(abort_new(&in, seq, false), &in, conn);
	}
}

/**
 * l4lb_reset_idle() - reset an expired connection if its service says so
 * @conn: the connection, not yet killed
 *
 * Only an established connection: in other states the ends know already that it
 * is over, or do not wait for each other.
 *
 * Context: RCU; any.
 */
void l4lb_reset_idle(struct l4lb_conn *conn)
{
	u8 state = READ_ONCE(conn->state);

	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ||
	    (state != L4LB_TCP_ESTABLISHED && state != L4LB_SCTP_ESTABLISHED) ||
	    READ_ONCE(l4lb_conn_net(conn)->exiting) || !l4lb_reset_wanted(conn))
		return;
	local_bh_disable();
	l4lb_reset_both(conn);
	local_bh_enable();
}

static struct sk_buff *refuse_tcp(const struct sk_buff *skb,
				  const struct l4lb_pkt *pkt,
				  const struct l4lb_flow *back)
{
	const struct tcphdr *th;
	struct tcphdr _th;
	unsigned int head;

	th = skb_header_pointer(skb, pkt->l4, sizeof(_th), &_th);
	if (!th)
		return NULL;
	head = pkt->l4 + th->doff * 4;
	if (head > skb->len)
		return NULL;
	return rst_new(back, 0, ntohl(th->seq) + skb->len - head + th->syn +
				th->fin);
}

/* The sender of an INIT accepts an ABORT only with the INIT's initiate tag. */
static struct sk_buff *refuse_sctp(const struct sk_buff *skb,
				   const struct l4lb_pkt *pkt,
				   const struct l4lb_flow *back)
{
	unsigned int off = pkt->l4 + sizeof(struct sctphdr) +
			   sizeof(struct sctp_chunkhdr);
	const __be32 *tag;
	__be32 _tag;

	tag = skb_header_pointer(skb, off, sizeof(_tag), &_tag);
	return tag ? abort_new(back, ntohl(*tag), false) : NULL;
}

/**
 * l4lb_reset_refuse() - refuse a packet that no service takes
 * @skb: the packet: TCP without an acknowledgment, an SCTP INIT, or UDP
 * @pkt: the packet, parsed
 * @ln: namespace
 *
 * Context: RCU, BH off.
 */
void l4lb_reset_refuse(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct l4lb_net *ln)
{
	const struct l4lb_flow back = l4lb_flow_inverse(&pkt->flow);

	if (pkt->flow.proto == IPPROTO_TCP)
		send_to_client(refuse_tcp(skb, pkt, &back), &back, ln->net);
	else if (pkt->flow.proto == IPPROTO_SCTP)
		send_to_client(refuse_sctp(skb, pkt, &back), &back, ln->net);
	else
		l4lb_icmp_no_port(skb, pkt);
}

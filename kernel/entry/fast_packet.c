// SPDX-License-Identifier: GPL-2.0
/*
 * Packets at a device's ingress, before the stack has seen them:
 *
 *	headers -> connection -> admitted? -> route -> neighbour -> fits?
 *		-> trim, TTL, rewrite or wrap -> device
 *
 * Up to "fits?" the packet is not changed, and anything unusual is left to the
 * stack (the slow path); each reason has a counter.  After that the packet is
 * ours: it is forwarded, or dropped if there is no memory.  The packet that
 * leaves is the same that the slow path would have sent.
 *
 * Softirq, RCU; skb->data is at the network header.
 */
#include "entry/fast_packet.h"

#include <linux/if_vlan.h>
#include <net/xfrm.h>

#include "base/drop.h"
#include "conn/find.h"
#include "entry/fast_exit.h"
#include "entry/fast_headers.h"
#include "entry/fast_new.h"
#include "entry/fast_step.h"
#include "entry/fast_unwatched.h"
#include "forward/las_reply.h"
#include "forward/nat_plain.h"
#include "forward/reset.h"
#include "forward/tunnel.h"

/* ---- the packet ---- */

/* Addressed to this host, as a device hands it over, and not yet processed.
 * From veth it may still have the sender's socket, which does not matter: that
 * belongs to another namespace.
 */
static __always_inline bool is_plain(struct sk_buff *skb)
{
	return skb->pkt_type == PACKET_HOST &&
	       !skb_vlan_tag_present(skb) && !skb_dst(skb) &&
	       !skb_sk_is_prefetched(skb) &&
	       !skb_nfct(skb) && !skb_sec_path(skb) && !skb->ipvs_property &&
	       !rcu_access_pointer(skb->dev->rx_handler);
}

/* GSO packets that cannot be rewritten as one: their segments have headers of
 * their own, or their type is not known (merged by the device).
 */
static bool is_odd_gso(const struct sk_buff *skb)
{
	return skb_is_gso(skb) &&
	       (!skb_shinfo(skb)->gso_type ||
		skb_shinfo(skb)->gso_type & SKB_GSO_FRAGLIST);
}

/* ---- the way out ---- */

/* Does the packet fit, or do its GSO segments?  @room: for what wraps it. */
static bool fits(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		 const struct l4lb_fast_exit *exit, unsigned int room)
{
	if (likely(l4lb_dst_fits(exit->dst, exit->len + room)))
		return true;
	if (!skb_is_gso(skb))
		return false;
	skb_set_transport_header(skb, pkt->l4);
	return skb_gso_validate_network_len(skb, dst_mtu(exit->dst) - room);
}

/* ---- point of no return ---- */

/* Bytes that are about to be written to. */
static __always_inline unsigned int headers(const struct l4lb_pkt *pkt,
					    const struct l4lb_conn *conn, bool reply)
{
	if (!reply && conn->method != IP_VS_CONN_F_MASQ)
		return pkt->l4;
	return pkt->l4 + (pkt->flow.proto == IPPROTO_TCP ? sizeof(struct tcphdr) :
							   sizeof(struct udphdr));
}

static __always_inline int rework(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				  struct l4lb_conn *conn, const struct l4lb_fast_exit *exit)
{
	skb_orphan(skb);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, pkt->l4);
	if ((unlikely(skb->len > exit->len) && pskb_trim_rcsum(skb, exit->len)) ||
	    skb_cow_head(skb, LL_RESERVED_SPACE(exit->dst->dev)) ||
	    l4lb_make_writable(skb, headers(pkt, conn, exit->reply)))
		return -ENOMEM;
	skb_forward_csum(skb);
	if (pkt->flow.af == AF_INET)
		ip_decrease_ttl(ip_hdr(skb));
	else
		ipv6_hdr(skb)->hop_limit--;
	switch (exit->reply ? IP_VS_CONN_F_MASQ : conn->method) {
	case IP_VS_CONN_F_MASQ:
		return l4lb_nat_rewrite_here(skb, pkt, conn, exit->reply);
	case IP_VS_CONN_F_TUNNEL:
		return l4lb_tunnel_wrap(skb, pkt, conn, exit->route);
	default:
		return 0;
	}
}

static __always_inline void leave(struct sk_buff *skb, const struct l4lb_fast_exit *exit)
{
	/* If the neighbour turns out to be unreachable, the ICMP error would
	 * take a driver's data in skb->cb for IP options.
	 */
	memset(skb->cb, 0, max(sizeof(struct inet_skb_parm),
			       sizeof(struct inet6_skb_parm)));
	skb_clear_tstamp(skb);
	skb->dev = exit->dst->dev;
	skb_dst_set_noref(skb, exit->dst);
	neigh_output(exit->neigh, skb, exit->skip_cache);
}

static __always_inline enum l4lb_fast_count
forward(struct sk_buff *skb, const struct l4lb_pkt *pkt,
	struct l4lb_conn *conn, const struct l4lb_fast_device *d,
	struct l4lb_fast_exit *exit)
{
	const struct l4lb_net *ln = d->ln;
	const unsigned int len = exit->len;
	const bool reply = exit->reply;
	enum l4lb_fast_count count;
	unsigned int room = 0;

	count = reply ? l4lb_fast_reply_exit(skb, conn, d, pkt->flow.af, exit) :
			l4lb_fast_request_exit(conn, exit);
	if (unlikely(count != L4LB_FAST_SENT))
		return count;
	if (unlikely(l4lb_fast_is_wrapped(exit, ln)))
		return L4LB_SLOW_ROUTE;
	if (!reply && conn->method == IP_VS_CONN_F_TUNNEL) {
		room = l4lb_tunnel_room(skb, conn);
		if (unlikely(len + room > IP_MAX_MTU))
			return L4LB_SLOW_ROUTE;
	}
	if (unlikely(!fits(skb, pkt, exit, room)))
		return L4LB_SLOW_ROUTE;

	l4lb_fast_account(conn, pkt, len, reply);
	if (reply) {
		/* For queueing disciplines, as IP forwarding sets it. */
		if (pkt->flow.af == AF_INET)
			skb->priority = rt_tos2priority(ip_hdr(skb)->tos);
		l4lb_las_reply(skb, conn, len);
	} else {
		l4lb_reset_watch(conn, skb, pkt, len);
	}
	if (!exit->begun)
		l4lb_fast_advance(conn, pkt, reply);
	/* pktgen, for one, keeps a reference to the packets it sends. */
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (unlikely(!skb || rework(skb, pkt, conn, exit))) {
		l4lb_drop(ln, L4LB_DROP_MEMORY);
		kfree_skb(skb);
	} else {
		leave(skb, exit);
	}
	return L4LB_FAST_SENT;
}

/* For a packet without a connection.  NULL: the stack has it, and looks it up again. */
static __always_inline struct l4lb_conn *
begin_flow(struct sk_buff *skb, const struct l4lb_pkt *pkt, struct l4lb_fast_device *d,
	   unsigned int len, enum l4lb_fast_watch watch)
{
	struct l4lb_fast_first first = { .skb = skb, .len = len, .watch = watch };
	struct l4lb_conn *conn = NULL;

	/* Asking here saves a call for each datagram that somebody may look at. */
	if (watch == L4LB_FAST_UNKNOWN && pkt->flow.proto == IPPROTO_UDP &&
	    !l4lb_fast_has_new(d->ln))
		first.watch = l4lb_fast_unwatched(d, pkt->flow.af) ? L4LB_FAST_UNWATCHED :
								    L4LB_FAST_WATCHED;
	if (first.watch != L4LB_FAST_WATCHED)
		conn = l4lb_fast_begin(d, pkt, &first);
	if (!conn)
		l4lb_conn_keep_missed(d->ln, &pkt->flow);
	return conn;
}

static __always_inline enum l4lb_fast_count
handle(struct sk_buff *skb, struct l4lb_fast_device *d, u8 af)
{
	enum l4lb_fast_watch watch = L4LB_FAST_UNKNOWN;
	struct l4lb_net *ln = d->ln;
	enum l4lb_fast_count count;
	struct l4lb_fast_exit exit __l4lb_unset;
	struct l4lb_fast_view view __l4lb_unset;
	struct l4lb_conn *conn;
	struct l4lb_pkt pkt __l4lb_unset;

	if (unlikely(!is_plain(skb) || is_odd_gso(skb)))
		return L4LB_SLOW_HEADER;
	view = (struct l4lb_fast_view) { skb->data, skb_headlen(skb), skb->len };
	count = l4lb_fast_read_headers(&view, af, &pkt, &exit.len);
	if (unlikely(count != L4LB_FAST_SENT))
		return count;
	if (l4lb_fast_leaves_opening(ln, &pkt)) {
		if (pkt.tcp & L4LB_TCP_FLAG_ACK || !l4lb_fast_unwatched(d, af))
			return L4LB_SLOW_OPENS;
		watch = L4LB_FAST_UNWATCHED;
	}
	conn = l4lb_conn_find_here(ln, &pkt.flow, af, false, &exit.reply);
	exit.begun = !conn;
	if (exit.begun) {
		conn = begin_flow(skb, &pkt, d, exit.len, watch);
		if (!conn)
			return L4LB_SLOW_UNKNOWN;
	}
	count = exit.begun ? l4lb_fast_check_first(conn) :
			     l4lb_fast_check_conn(conn, &pkt, d, exit.reply);
	if (count != L4LB_FAST_SENT)
		return count;
	/* The stack drops it.  l4lb_fast_begin() has checked the sum. */
	if (af == AF_INET && !exit.begun && unlikely(ip_fast_csum(skb->data, 5)))
		return L4LB_SLOW_HEADER;
	return forward(skb, &pkt, conn, d, &exit);
}

unsigned int l4lb_fast_packet(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state)
{
	struct l4lb_fast_device *d = priv;
	enum l4lb_fast_count count;

	if (skb->protocol == htons(ETH_P_IP))
		count = handle(skb, d, AF_INET);
	else if (skb->protocol == htons(ETH_P_IPV6))
		count = handle(skb, d, AF_INET6);
	else
		return NF_ACCEPT;
	this_cpu_inc(d->ln->fast_counts[count]);
	return count == L4LB_FAST_SENT ? NF_STOLEN : NF_ACCEPT;
}

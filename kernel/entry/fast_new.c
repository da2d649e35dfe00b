// SPDX-License-Identifier: GPL-2.0
/*
 * Scheduling at ingress or in XDP: the first packet of a flow does not go through
 * the stack, either.  A service may ask for it (fast-path new); then neither the
 * firewall nor reverse path filtering sees that packet.  At ingress it also is so
 * while nobody would look at the packet in the stack: see fast_unwatched.h.
 *
 * The stack's own checks are done here: both checksums, that the source can be
 * another host, and that the VIP is an address of this host (a standby director
 * must route the packet on).
 *
 * Everything else is left to the stack: firewall marks (which are not set yet),
 * one-packet scheduling, defence against floods, connection tracking, and services
 * whose latency is measured, which have conn-state lazy or persistence engine sip, and
 * control connections with a helper, or full NAT.
 */
#include "entry/fast_new.h"

#include <linux/netfilter.h>
#include <net/addrconf.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/route.h>

#include "conn/lookup.h"
#include "entry/fast_admit.h"
#include "entry/fast_routes.h"
#include "entry/fast_unwatched.h"
#include "entry/xdp_frame.h"
#include "forward/lazy.h"
#include "forward/schedule.h"
#include "service/find.h"
#include "service/range.h"
#include "service/server_table.h"
#include "sync/daemon.h"

static bool may_begin(const struct l4lb_net *ln, const struct l4lb_pkt *pkt)
{
	if (pkt->flow.proto == IPPROTO_TCP &&
	    (pkt->tcp & (L4LB_TCP_FLAG_SYN | L4LB_TCP_FLAG_ACK |
			 L4LB_TCP_FLAG_FIN | L4LB_TCP_FLAG_RST)) !=
	    L4LB_TCP_FLAG_SYN)
		return false;
	return l4lb_flow_may_start(&pkt->flow) && !l4lb_sync_stands_by(ln) &&
	       !(READ_ONCE(ln->n_fwmark) | READ_ONCE(ln->sysctl.drop_packet) |
		 READ_ONCE(ln->sysctl.conntrack));
}

/* Multicast and IPv4-mapped addresses are not unicast; a link-local address may
 * belong to another link.
 */
static bool is_plain_ipv6(const struct in6_addr *addr)
{
	return (ipv6_addr_type(addr) &
		(IPV6_ADDR_UNICAST | IPV6_ADDR_LOOPBACK |
		 IPV6_ADDR_LINKLOCAL)) == IPV6_ADDR_UNICAST;
}

/* Local: an address of this host, or a route of type "local". */
static bool is_local_ipv4(struct net *net, __be32 addr)
{
	return !ipv4_is_loopback(addr) &&
	       inet_addr_type(net, addr) == RTN_LOCAL;
}

static bool is_local_ipv6(struct net *net, const struct in6_addr *addr)
{
	struct flowi6 fl6 = { .daddr = *addr };
	struct dst_entry *dst;
	bool local;

	if (!is_plain_ipv6(addr))
		return false;
	if (ipv6_chk_addr(net, addr, NULL, 0))
		return true;
	dst = ip6_route_lookup(net, &fl6, NULL, 0);
	local = !dst->error && dst_rt6_info(dst)->rt6i_flags & RTF_LOCAL;
	dst_release(dst);
	return local;
}

/* The answer is kept in @svc->vip_local with @generation, if that is @settled: see
 * vip_is_local().
 */
static noinline bool vip_look_up(const struct l4lb_net *ln, struct l4lb_service *svc,
				 const union nf_inet_addr *vip, u32 generation,
				 bool settled)
{
	bool local;

	/* Look up after reading the generation: later changes increment it. */
	smp_rmb();
	local = svc->key.af == AF_INET ? is_local_ipv4(ln->net, vip->ip) :
					 is_local_ipv6(ln->net, &vip->in6);
	if (settled && !l4lb_key_has_vips(&svc->key))
		WRITE_ONCE(svc->vip_local, generation | local);
	return local;
}

static noinline bool vip6_is_local(const struct l4lb_net *ln, struct l4lb_service *svc,
				   const union nf_inet_addr *vip)
{
	u32 generation = 0, known = READ_ONCE(svc->vip_local);
	bool settled = l4lb_fast_generation(ln->fast, &generation);

	generation = generation << 2 | 2;
	if (likely(settled && (known | 1) == (generation | 1)))
		return known & 1;
	return vip_look_up(ln, svc, vip, generation, settled);
}

/* @svc->vip_local caches the answer, with the generation of the addresses and
 * routes that it is valid for.  Bit 0: the answer; bit 1: there is one.  A service with
 * several VIPs has none.
 */
static __always_inline bool vip_is_local(const struct l4lb_net *ln,
					 struct l4lb_service *svc,
					 const union nf_inet_addr *vip, u8 af)
{
	u32 generation, known;

	if (af == AF_INET6)
		return vip6_is_local(ln, svc, vip);
	known = READ_ONCE(svc->vip_local);
	generation = rt_genid_ipv4(ln->net) << 2 | 2;
	if (likely((known | 1) == (generation | 1)))
		return known & 1;
	return vip_look_up(ln, svc, vip, generation, true);
}

/* Is the VIP an address of this host, and the source a unicast address of
 * another one?  Other sources (own, multicast, broadcast, zero) and loopback
 * destinations are left to the stack, which drops such packets (own sources:
 * unless accept_local is set).  @svc: a service by address.
 */
static __always_inline bool addresses_ok(const struct l4lb_net *ln, struct l4lb_service *svc,
					 const struct l4lb_flow *flow,
					 const struct net_device *dev)
{
	const struct inet6_dev *idev;

	if (flow->af == AF_INET)
		return l4lb_fast_source_ok(ln->fast, flow->saddr.ip) &&
		       vip_is_local(ln, svc, &flow->daddr, AF_INET);
	idev = __in6_dev_get(dev);
	return idev && !READ_ONCE(idev->cnf.disable_ipv6) &&
	       is_plain_ipv6(&flow->saddr.in6) &&
	       vip_is_local(ln, svc, &flow->daddr, AF_INET6);
}

/* Comes from a real server's port: the slow path refuses it (nat_icmp_send), or knows
 * it (full NAT).
 */
static bool is_stray(struct l4lb_net *ln, const struct l4lb_flow *flow)
{
	if (likely(!(READ_ONCE(ln->sysctl.nat_icmp_send) | READ_ONCE(ln->snat))))
		return false;
	return l4lb_conn_find_local(ln, flow) ||
	       (READ_ONCE(ln->sysctl.nat_icmp_send) && l4lb_server_is_source(ln, flow));
}

/* An IPv4 datagram needs no checksum. */
static bool needs_none(const struct l4lb_fast_view *view,
		       const struct l4lb_pkt *pkt)
{
	const struct udphdr *udp = view->data + pkt->l4;

	return pkt->flow.af == AF_INET && pkt->flow.proto == IPPROTO_UDP &&
	       !udp->check;
}

static __always_inline bool header_ok(const struct l4lb_fast_view *view,
				      const struct l4lb_pkt *pkt)
{
	return pkt->flow.af == AF_INET6 ||
	       !ip_fast_csum(view->data, sizeof(struct iphdr) / 4);
}

static bool skb_is_whole(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			 unsigned int len)
{
	const struct l4lb_fast_view view = { skb->data };

	/* nf_checksum() would include the padding. */
	if (skb->len != len || !header_ok(&view, pkt))
		return false;
	/* nf_checksum() writes its result into the skb. */
	return needs_none(&view, pkt) ||
	       (!skb_shared(skb) &&
		!nf_checksum(skb, NF_INET_LOCAL_IN, pkt->l4, pkt->flow.proto,
			     pkt->flow.af));
}

static bool frame_is_whole(const struct l4lb_fast_view *view,
			   const struct l4lb_pkt *pkt, unsigned int len)
{
	const struct l4lb_flow *flow = &pkt->flow;
	unsigned int l4_len = len - pkt->l4;
	__wsum sum;

	if (!header_ok(view, pkt))
		return false;
	if (needs_none(view, pkt))
		return true;
	sum = csum_partial(view->data + pkt->l4, l4_len, 0);
	if (flow->af == AF_INET)
		return !csum_tcpudp_magic(flow->saddr.ip, flow->daddr.ip,
					  l4_len, flow->proto, sum);
	return !csum_ipv6_magic(&flow->saddr.in6, &flow->daddr.in6, l4_len,
				flow->proto, sum);
}

/* Are its checksums right, and does its frame show them? */
static __always_inline bool is_whole(const struct l4lb_fast_first *first,
				     const struct l4lb_fast_device *d,
				     const struct l4lb_pkt *pkt)
{
	if (first->skb)
		return skb_is_whole(first->skb, pkt, first->len);
	if (unlikely(l4lb_xdp_is_hiding(d, first->from))) {
		this_cpu_inc(d->ln->fast_counts[L4LB_XDP_OFFLOAD]);
		return false;
	}
	return frame_is_whole(first->view, pkt, first->len);
}

static bool is_unwatched(const struct l4lb_fast_device *d, u8 af,
			 enum l4lb_fast_watch watch)
{
	return watch == L4LB_FAST_UNKNOWN ? l4lb_fast_unwatched(d, af) :
					    watch == L4LB_FAST_UNWATCHED;
}

/* NULL: leave the packet to the stack. */
static __always_inline struct l4lb_service *
find_service(const struct l4lb_fast_device *d, const struct l4lb_pkt *pkt,
	     enum l4lb_fast_watch watch)
{
	struct l4lb_net *ln = d->ln;
	u8 af = pkt->flow.af;
	struct l4lb_service *svc;
	u32 mode;

	if (!may_begin(ln, pkt))
		return NULL;
	if (!l4lb_fast_has_new(ln) && watch != L4LB_FAST_UNWATCHED)
		return NULL;
	svc = l4lb_service_lookup(ln, 0, &pkt->flow);
	if (!svc)
		return NULL;
	mode = l4lb_fast_mode(ln, svc);
	if (mode == L4LB_FAST_PATH_OFF ||
	    (mode == L4LB_FAST_PATH_ON && !is_unwatched(d, af, watch)) ||
	    READ_ONCE(svc->flags) & IP_VS_SVC_F_ONEPACKET ||
	    READ_ONCE(svc->uses) & (L4LB_USE_LATENCY | L4LB_USE_CALL |
				    L4LB_USE_HELPER | L4LB_USE_SNAT) ||
	    l4lb_lazy_wanted(svc) ||
	    READ_ONCE(svc->refused) == (u32)jiffies ||
	    is_stray(ln, &pkt->flow) ||
	    !addresses_ok(ln, svc, &pkt->flow, d->ops.dev))
		return NULL;
	return svc;
}

/**
 * l4lb_fast_begin() - schedule a packet that has no connection
 * @d: the device it came in by
 * @pkt: the packet, parsed
 * @first: where the packet is, and what is known of it
 *
 * Context: softirq, RCU.  Return: the connection, admitted; NULL: leave the
 * packet to the stack.
 */
struct l4lb_conn *l4lb_fast_begin(struct l4lb_fast_device *d, const struct l4lb_pkt *pkt,
				  const struct l4lb_fast_first *first)
{
	struct l4lb_service *svc = find_service(d, pkt, first->watch);
	struct l4lb_conn *conn;
	enum l4lb_drop reason;
	u8 id;

	if (!svc || !is_whole(first, d, pkt))
		return NULL;
	id = l4lb_fast_device_id(d);
	if (unlikely(!id))
		return NULL;
	/* If it fails, the slow path fails again and tells the sender: for a moment
	 * none is tried here, since it is three times the work.  But one client that
	 * has too many connections with the same replies must not stop all others.
	 */
	conn = l4lb_schedule_here(svc, &pkt->flow, pkt, NULL, &reason);
	if (unlikely(!conn)) {
		if (reason != L4LB_DROP_SAME_REPLIES)
			WRITE_ONCE(svc->refused, (u32)jiffies);
		return NULL;
	}
	l4lb_fast_admit_first(conn, id);
	return conn;
}

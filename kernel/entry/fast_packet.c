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
#include <net/arp.h>
#include <net/ip6_route.h>
#include <net/ndisc.h>
#include <net/route.h>
#include <net/xfrm.h>

#include "base/drop.h"
#include "conn/count.h"
#include "conn/lookup.h"
#include "conn/state.h"
#include "entry/fast_admit.h"
#include "entry/fast_new.h"
#include "forward/las_reply.h"
#include "forward/nat.h"
#include "forward/reset.h"
#include "forward/tunnel.h"
#include "sync/send.h"

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

/* @len gets the length of the IP packet; the skb may have padding after it. */
static __always_inline bool
read_ipv4(const struct sk_buff *skb, struct l4lb_pkt *pkt, unsigned int *len)
{
	const struct iphdr *iph = (const struct iphdr *)skb->data;

	if (skb_headlen(skb) < sizeof(*iph) || iph->version != 4 ||
	    iph->ihl != sizeof(*iph) / 4 || ip_is_fragment(iph) ||
	    iph->ttl <= 1)
		return false;
	*len = ntohs(iph->tot_len);
	pkt->l4 = sizeof(*iph);
	pkt->flow.saddr = (union nf_inet_addr){ .ip = iph->saddr };
	pkt->flow.daddr = (union nf_inet_addr){ .ip = iph->daddr };
	pkt->flow.proto = iph->protocol;
	return *len <= skb->len;
}

static __always_inline bool
read_ipv6(const struct sk_buff *skb, struct l4lb_pkt *pkt, unsigned int *len)
{
	const struct ipv6hdr *iph = (const struct ipv6hdr *)skb->data;

	if (skb_headlen(skb) < sizeof(*iph) || iph->version != 6 ||
	    iph->hop_limit <= 1)
		return false;
	*len = sizeof(*iph) + ntohs(iph->payload_len);
	pkt->l4 = sizeof(*iph);
	pkt->flow.saddr.in6 = iph->saddr;
	pkt->flow.daddr.in6 = iph->daddr;
	pkt->flow.proto = iph->nexthdr;
	return *len <= skb->len;
}

static __always_inline enum l4lb_fast_count
read_l4(const struct sk_buff *skb, struct l4lb_pkt *pkt, unsigned int len)
{
	const struct tcphdr *tcp = (const void *)skb->data + pkt->l4;
	unsigned int need;

	if (pkt->flow.proto == IPPROTO_TCP)
		need = pkt->l4 + sizeof(struct tcphdr);
	else if (pkt->flow.proto == IPPROTO_UDP)
		need = pkt->l4 + sizeof(struct udphdr);
	else
		return L4LB_SLOW_PROTOCOL;
	if (len < need || skb_headlen(skb) < need)
		return L4LB_SLOW_HEADER;
	pkt->flow.sport = tcp->source;
	pkt->flow.dport = tcp->dest;
	pkt->tcp = 0;
	if (pkt->flow.proto == IPPROTO_TCP) {
		if (tcp->doff < 5)
			return L4LB_SLOW_HEADER;
		pkt->tcp = tcp_flag_byte(tcp);
	}
	return L4LB_FAST_SENT;
}

/* ---- the connection ---- */

/* Does this packet leave the connection in its state?  A segment with ACK but
 * no SYN, FIN or RST does, between the handshake and the last FIN.
 */
static bool keeps_state(const struct l4lb_conn *conn,
			const struct l4lb_pkt *pkt, bool reply)
{
	if (pkt->flow.proto == IPPROTO_UDP)
		return true;
	if ((pkt->tcp & (L4LB_TCP_FLAG_ACK | L4LB_TCP_FLAG_SYN |
			 L4LB_TCP_FLAG_FIN | L4LB_TCP_FLAG_RST)) !=
	    L4LB_TCP_FLAG_ACK)
		return false;
	/* The first answer makes it safe from a flood, and is waited for. */
	if (reply && unlikely(!l4lb_conn_test(conn, L4LB_CONN_ANSWERED)))
		return false;
	return BIT(READ_ONCE(conn->state)) & (BIT(L4LB_TCP_ESTABLISHED) |
					      BIT(L4LB_TCP_FIN_WAIT) |
					      BIT(L4LB_TCP_CLOSE_WAIT));
}

/* Forwarding methods of the fast path: not local node, not bypass. */
static bool is_forwarded(const struct l4lb_conn *conn)
{
	return conn->method == IP_VS_CONN_F_MASQ ||
	       conn->method == IP_VS_CONN_F_TUNNEL ||
	       conn->method == IP_VS_CONN_F_DROUTE;
}

/* May another server get the datagram?  See moves_on() in hook.c. */
static bool may_move(const struct l4lb_conn *conn,
		     const struct l4lb_service *svc)
{
	return READ_ONCE(conn->server->drains) &&
	       conn->proto == IPPROTO_UDP &&
	       READ_ONCE(svc->policy.on_drain) == L4LB_DRAIN_MOVE;
}

/* L4LB_FAST_SENT: the packet may pass.  @begun: it has created @conn. */
static __always_inline enum l4lb_fast_count
check_conn(const struct l4lb_conn *conn, const struct l4lb_pkt *pkt,
	   const struct l4lb_fast_device *d, bool reply, bool begun)
{
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	if (unlikely(!svc || !l4lb_server_available(conn->server) ||
		     !is_forwarded(conn) || may_move(conn, svc)))
		return L4LB_SLOW_SERVER;
	if (unlikely(l4lb_fast_mode(d->ln, svc) == L4LB_FAST_PATH_OFF ||
		     l4lb_conn_test(conn, L4LB_CONN_TRACKED)))
		return L4LB_SLOW_POLICY;
	/* It may need a new connection, see port_reused() in hook.c. */
	if (unlikely(l4lb_pkt_opens(pkt) && !begun))
		return L4LB_SLOW_OPENS;
	/* Replies: see find_reply_exit(). */
	if (unlikely(l4lb_fast_term_over(d->ln, conn) ||
		     (!reply && !l4lb_fast_admitted_in(conn, READ_ONCE(d->id)))))
		return L4LB_SLOW_ADMIT;
	return L4LB_FAST_SENT;
}

/* ---- the way out ---- */

/* How a packet leaves. */
struct exit {
	struct dst_entry	*dst;
	const struct l4lb_route	*route;	/* of the request; NULL: a reply */
	struct neighbour	*neigh;
	unsigned int		len;	/* of the IP packet */
	bool			skip_cache;
	bool			reply;
};

/* A neighbour that is not resolved or has failed is left to the stack. */
static __always_inline bool
find_neigh(struct exit *exit, u8 af, const union nf_inet_addr *to)
{
	struct net_device *dev = exit->dst->dev;
	struct neighbour *neigh;

	if (af == AF_INET) {
		const struct rtable *rt = dst_rtable(exit->dst);

		if (rt->rt_gw_family == AF_INET6)
			neigh = __ipv6_neigh_lookup_noref(dev, &rt->rt_gw6);
		else
			neigh = __ipv4_neigh_lookup_noref(dev, (__force u32)
				(rt->rt_gw_family ? rt->rt_gw4 : to->ip));
		exit->skip_cache = rt->rt_gw_family == AF_INET6;
	} else {
		const struct rt6_info *rt = dst_rt6_info(exit->dst);

		neigh = __ipv6_neigh_lookup_noref(dev,
						  rt6_nexthop(rt, &to->in6));
		exit->skip_cache = false;
	}
	exit->neigh = neigh;
	return neigh && READ_ONCE(neigh->nud_state) & NUD_VALID;
}

static __always_inline enum l4lb_fast_count
find_request_exit(const struct l4lb_conn *conn, struct exit *exit)
{
	exit->route = l4lb_route_get(conn->server, conn->method);
	if (IS_ERR(exit->route) || unlikely(exit->route->local))
		return L4LB_SLOW_ROUTE;
	exit->dst = exit->route->dst;
	return find_neigh(exit, exit->route->af, &exit->route->to) ?
	       L4LB_FAST_SENT : L4LB_SLOW_ROUTE;
}

static __always_inline enum l4lb_fast_count
find_reply_exit(struct sk_buff *skb, struct l4lb_conn *conn,
		const struct l4lb_fast_device *d, u8 af, struct exit *exit)
{
	const union nf_inet_addr client = l4lb_conn_client(conn);
	const struct l4lb_fast_back *back;

	smp_rmb();	/* the term first; pairs with l4lb_fast_admit() */
	back = l4lb_fast_back_of(d->ln->fast, conn);
	if (unlikely(!back || back->device != d->serial))
		return L4LB_SLOW_ADMIT;
	exit->route = NULL;
	exit->dst = l4lb_fast_back_dst(back);
	if (unlikely(!exit->dst))
		exit->dst = l4lb_fast_back_renew(d->ln->fast, conn, skb, back);
	return likely(exit->dst) && find_neigh(exit, af, &client) ?
	       L4LB_FAST_SENT : L4LB_SLOW_ROUTE;
}

/* Does the packet fit, or do its GSO segments? */
static bool fits(struct sk_buff *skb, unsigned int len, unsigned int l4,
		 unsigned int mtu)
{
	if (likely(len <= mtu))
		return true;
	if (!skb_is_gso(skb))
		return false;
	skb_set_transport_header(skb, l4);
	return skb_gso_validate_network_len(skb, mtu);
}

/* ---- point of no return ---- */

static int rework(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		  struct l4lb_conn *conn, const struct exit *exit)
{
	skb_orphan(skb);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, pkt->l4);
	if ((skb->len > exit->len && pskb_trim_rcsum(skb, exit->len)) ||
	    skb_cow_head(skb, LL_RESERVED_SPACE(exit->dst->dev)) ||
	    skb_ensure_writable(skb, pkt->l4))
		return -ENOMEM;
	skb_forward_csum(skb);
	if (pkt->flow.af == AF_INET)
		ip_decrease_ttl(ip_hdr(skb));
	else
		ipv6_hdr(skb)->hop_limit--;
	switch (exit->reply ? IP_VS_CONN_F_MASQ : conn->method) {
	case IP_VS_CONN_F_MASQ:
		return l4lb_nat_rewrite(skb, pkt, conn, exit->reply);
	case IP_VS_CONN_F_TUNNEL:
		return l4lb_tunnel_wrap(skb, pkt, conn, exit->route);
	default:
		return 0;
	}
}

static void leave(struct sk_buff *skb, const struct exit *exit)
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
	struct exit *exit)
{
	const struct l4lb_net *ln = d->ln;
	const unsigned int len = exit->len;
	const bool reply = exit->reply;
	enum l4lb_fast_count count;
	unsigned int room = 0;

	count = reply ? find_reply_exit(skb, conn, d, pkt->flow.af, exit) :
			find_request_exit(conn, exit);
	if (unlikely(count != L4LB_FAST_SENT))
		return count;
	if (unlikely(exit->dst->lwtstate || dst_xfrm(exit->dst) ||
		     l4lb_fast_has_ipsec(ln->net)))
		return L4LB_SLOW_ROUTE;
	if (!reply && conn->method == IP_VS_CONN_F_TUNNEL) {
		room = l4lb_tunnel_room(skb, conn);
		if (unlikely(len + room > IP_MAX_MTU))
			return L4LB_SLOW_ROUTE;
	}
	if (unlikely(!fits(skb, len, pkt->l4, dst_mtu(exit->dst) - room)))
		return L4LB_SLOW_ROUTE;

	if (reply) {
		l4lb_account_out(conn->server, len);
		/* For queueing disciplines, as IP forwarding sets it. */
		if (pkt->flow.af == AF_INET)
			skb->priority = rt_tos2priority(ip_hdr(skb)->tos);
		l4lb_las_reply(skb, conn, len);
	} else {
		l4lb_account_in(conn->server, len);
		/* A change of the state announces it by itself. */
		if (l4lb_conn_count_packet(conn) && l4lb_sync_counted(conn) &&
		    keeps_state(conn, pkt, false))
			l4lb_sync_due(conn);
		l4lb_reset_watch(conn, skb, pkt, len);
	}
	if (likely(keeps_state(conn, pkt, reply)))
		l4lb_conn_touch(conn);
	else
		l4lb_state_packet(conn, pkt, reply);
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

static __always_inline enum l4lb_fast_count
handle(struct sk_buff *skb, struct l4lb_fast_device *d, u8 af)
{
	struct l4lb_net *ln = d->ln;
	enum l4lb_fast_count count;
	struct l4lb_conn *conn;
	struct l4lb_pkt pkt;
	struct exit exit;
	bool begun = false;

	if (unlikely(!is_plain(skb) || is_odd_gso(skb)))
		return L4LB_SLOW_HEADER;
	pkt.flow.af = af;
	pkt.chunk = 0;
	pkt.hook = NF_INET_LOCAL_IN;
	if (unlikely(af == AF_INET ? !read_ipv4(skb, &pkt, &exit.len) :
				     !read_ipv6(skb, &pkt, &exit.len)))
		return L4LB_SLOW_HEADER;
	count = read_l4(skb, &pkt, exit.len);
	if (unlikely(count != L4LB_FAST_SENT))
		return count;
	conn = l4lb_conn_find_both(ln, &pkt.flow, &exit.reply);
	if (!conn) {
		conn = l4lb_fast_begin(skb, &pkt, d, exit.len);
		begun = conn;
		if (!conn)
			return L4LB_SLOW_UNKNOWN;
	}
	count = check_conn(conn, &pkt, d, exit.reply, begun);
	if (count != L4LB_FAST_SENT)
		return count;
	/* The stack drops it.  l4lb_fast_begin() has checked the sum. */
	if (af == AF_INET && !begun && unlikely(ip_fast_csum(skb->data, 5)))
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

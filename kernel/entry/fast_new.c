// SPDX-License-Identifier: GPL-2.0
/*
 * Scheduling at ingress, for services that ask for it (fast-path new): the
 * first packet of a flow does not go through the stack, either.  Neither the
 * firewall nor reverse path filtering sees it, so the stack's checks are done
 * here: both checksums, that the source can be another host, and that the VIP
 * is an address of this host (a standby director must route the packet on).
 *
 * Everything else is left to the stack: firewall marks (which are not set yet),
 * one-packet scheduling, defence against floods, connection tracking.
 */
#include "entry/fast_new.h"

#include <linux/netfilter.h>
#include <net/addrconf.h>
#include <net/ip6_route.h>
#include <net/route.h>

#include "conn/state.h"
#include "entry/fast_admit.h"
#include "entry/fast_routes.h"
#include "forward/schedule.h"
#include "service/server_table.h"

static bool may_begin(const struct l4lb_net *ln, const struct l4lb_pkt *pkt)
{
	if (likely(!l4lb_fast_has_new(ln)))
		return false;
	if (pkt->flow.proto == IPPROTO_TCP &&
	    (pkt->tcp & (L4LB_TCP_FLAG_SYN | L4LB_TCP_FLAG_ACK |
			 L4LB_TCP_FLAG_FIN | L4LB_TCP_FLAG_RST)) !=
	    L4LB_TCP_FLAG_SYN)
		return false;
	return l4lb_flow_may_start(&pkt->flow) && !READ_ONCE(ln->n_fwmark) &&
	       !READ_ONCE(ln->sysctl.drop_packet) &&
	       !READ_ONCE(ln->sysctl.conntrack);
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

/* @svc->vip_local caches the answer, with the generation of the addresses and
 * routes that it is valid for.  Bit 0: the answer; bit 1: there is one.
 */
static bool vip_is_local(const struct l4lb_net *ln, struct l4lb_service *svc)
{
	const union nf_inet_addr *vip = &svc->key.addr;
	bool v4 = svc->key.af == AF_INET, settled = true, local;
	u32 generation = 0, known = READ_ONCE(svc->vip_local);

	if (v4)
		generation = rt_genid_ipv4(ln->net);
	else
		settled = l4lb_fast_generation(ln->fast, &generation);
	generation = generation << 2 | 2;
	if (likely(settled && (known | 1) == (generation | 1)))
		return known & 1;
	/* Look up after reading the generation: later changes increment it. */
	smp_rmb();
	local = v4 ? is_local_ipv4(ln->net, vip->ip) :
		   is_local_ipv6(ln->net, &vip->in6);
	if (settled)
		WRITE_ONCE(svc->vip_local, generation | local);
	return local;
}

/* Is the VIP an address of this host, and the source a unicast address of
 * another one?  Other sources (own, multicast, broadcast, zero) and loopback
 * destinations are left to the stack, which drops such packets (own sources:
 * unless accept_local is set).  @svc: a service by address.
 */
static bool addresses_ok(const struct l4lb_net *ln, struct l4lb_service *svc,
			 const struct l4lb_flow *flow,
			 const struct net_device *dev)
{
	const struct inet6_dev *idev;

	if (flow->af == AF_INET)
		return l4lb_fast_source_ok(ln->fast, flow->saddr.ip) &&
		       vip_is_local(ln, svc);
	idev = __in6_dev_get(dev);
	return idev && !READ_ONCE(idev->cnf.disable_ipv6) &&
	       is_plain_ipv6(&flow->saddr.in6) && vip_is_local(ln, svc);
}

/* Comes from a real server's port: the slow path refuses it (nat_icmp_send). */
static bool is_stray(struct l4lb_net *ln, const struct l4lb_flow *flow)
{
	return unlikely(READ_ONCE(ln->sysctl.nat_icmp_send)) &&
	       l4lb_server_is_source(ln, flow);
}

static bool is_whole(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     unsigned int len)
{
	const struct udphdr *udp = (const void *)skb->data + pkt->l4;

	/* nf_checksum() would include the padding. */
	if (skb->len != len)
		return false;
	if (pkt->flow.af == AF_INET) {
		if (ip_fast_csum(skb->data, sizeof(struct iphdr) / 4))
			return false;
		if (pkt->flow.proto == IPPROTO_UDP && !udp->check)
			return true;
	}
	/* nf_checksum() writes its result into the skb. */
	return !skb_shared(skb) &&
	       !nf_checksum(skb, NF_INET_LOCAL_IN, pkt->l4, pkt->flow.proto,
			    pkt->flow.af);
}

/**
 * l4lb_fast_begin() - schedule a packet that has no connection
 * @skb: the packet, unchanged
 * @pkt: the packet, parsed
 * @d: the device it came in by
 * @len: its length without padding
 *
 * Context: softirq, RCU.  Return: the connection, admitted; NULL: leave the
 * packet to the stack.
 */
struct l4lb_conn *l4lb_fast_begin(struct sk_buff *skb,
				  const struct l4lb_pkt *pkt,
				  struct l4lb_fast_device *d,
				  unsigned int len)
{
	struct l4lb_net *ln = d->ln;
	struct l4lb_service *svc;
	struct l4lb_conn *conn;
	enum l4lb_drop reason;
	u8 id;

	if (!may_begin(ln, pkt))
		return NULL;
	svc = l4lb_service_lookup(ln, 0, &pkt->flow);
	if (!svc || l4lb_fast_mode(ln, svc) != L4LB_FAST_PATH_NEW ||
	    READ_ONCE(svc->flags) & IP_VS_SVC_F_ONEPACKET ||
	    is_stray(ln, &pkt->flow) ||
	    !addresses_ok(ln, svc, &pkt->flow, skb->dev) ||
	    !is_whole(skb, pkt, len))
		return NULL;
	id = l4lb_fast_device_id(d);
	if (unlikely(!id))
		return NULL;
	/* If it fails, the slow path fails again and tells the sender. */
	conn = l4lb_schedule(svc, &pkt->flow, NULL, &reason);
	if (!conn)
		return NULL;
	l4lb_state_packet(conn, pkt, false);
	l4lb_fast_admit(conn, false, id);
	return conn;
}

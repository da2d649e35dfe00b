// SPDX-License-Identifier: GPL-2.0
/*
 * The fast path before there is an skb: a small XDP program on a device, which
 * "ipvsctl fast-path xdp" makes and attaches, calls l4lb_xdp() for each frame.
 *
 * It takes the packets of flows that are admitted to the fast path, see fast.h,
 * and the first ones of those that fast_new.c schedules, and sends the same bytes
 * as fast_packet.c would.  All other frames go on to the
 * stack as they came; there fast_packet.c or the slow path gets them, and counts
 * why.
 *
 * A frame shows neither a checksum that its sender has left to the device, nor a
 * VLAN tag that the device has taken off.  Devices on which that may happen are
 * left alone.
 */
#include "entry/xdp.h"

#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/etherdevice.h>
#include <linux/filter.h>
#include <net/bonding.h>
#include <net/rtnetlink.h>
#include <net/xdp.h>

#include "conn/find.h"
#include "entry/fast_exit.h"
#include "entry/fast_headers.h"
#include "entry/fast_new.h"
#include "entry/fast_step.h"
#include "entry/xdp_frame.h"
#include "forward/las_reply.h"
#include "forward/nat_plain.h"
#include "forward/reset.h"
#include "forward/tunnel.h"

/* The result: an action, and above it the ifindex for XDP_REDIRECT.  Part of the
 * interface to the program.
 */
#define ACTION_BITS	4

bool l4lb_xdp_is_opaque(const struct net_device *dev)
{
	const struct device *parent = dev->dev.parent;

	return (dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, "tun")) ||
	       (parent && parent->bus && !strcmp(parent->bus->name, "xen"));
}

static __always_inline bool takes_frames(const struct l4lb_fast_exit *exit)
{
	const struct net_device *dev = exit->dst->dev;

	return (exit->reply ? l4lb_dev_is_ethernet(dev) : exit->route->plain) &&
	       l4lb_dev_takes_frames(dev, l4lb_xdp_peer_of(dev));
}

/* A slave on which a bond takes only broadcasts: what comes there comes twice.
 * While a device joins or leaves a bond, there is no struct slave.
 */
static bool is_spare(const struct net_device *dev)
{
	struct slave *slave = netif_is_bond_slave(dev) ?
			      bond_slave_get_rcu(dev) : NULL;

	return slave && bond_is_slave_inactive(slave);
}

/* The connection needs more than what is done here with its packet. */
static bool is_watched(const struct l4lb_conn *conn, bool reply)
{
	return reply ? l4lb_conn_has_use(conn, L4LB_USE_SERVED) :
		       l4lb_reset_wanted(conn);
}

/* Bytes to put before the packet; -1: leave it to the stack. */
static int room_for(const struct xdp_buff *xdp, const struct l4lb_conn *conn,
		    bool reply)
{
	int room;

	if (reply || conn->method != IP_VS_CONN_F_TUNNEL)
		return 0;
	room = l4lb_tunnel_ipip_room(conn);
	return room && xdp->data - xdp->data_hard_start >=
		       (ptrdiff_t)(room + sizeof(struct xdp_frame)) ? room : -1;
}

/* The IP packet that leaves begins at the result. */
static __always_inline void *rework(void *l3, const struct l4lb_pkt *pkt,
				    const struct l4lb_conn *conn,
				    const struct l4lb_fast_exit *exit, int room)
{
	if (pkt->flow.af == AF_INET)
		ip_decrease_ttl(l3);
	else
		((struct ipv6hdr *)l3)->hop_limit--;
	if (exit->reply || conn->method == IP_VS_CONN_F_MASQ)
		l4lb_nat_headers(l3, pkt, conn, exit->reply);
	else if (room)
		l4lb_tunnel_ipip_write(l3 - room, pkt->flow.af, exit->len, conn,
				       exit->route);
	return l3 - room;
}

static __always_inline u64 leave(struct xdp_buff *xdp, void *l3, u8 af,
				 const struct l4lb_fast_exit *exit, union l4lb_hop hop)
{
	const struct net_device *dev = exit->dst->dev;
	struct ethhdr *eth = l3 - ETH_HLEN;

	/* What a driver or a program has noted about the frame is over. */
	if (!xdp_data_meta_unsupported(xdp))
		xdp->data_meta = eth;
	xdp->data = eth;
	ether_addr_copy(eth->h_dest, hop.addr);
	ether_addr_copy(eth->h_source, dev->dev_addr);
	eth->h_proto = htons(af == AF_INET ? ETH_P_IP : ETH_P_IPV6);
	/* A veth wakes the other end for XDP_TX only if that runs XDP itself. */
	if (dev == xdp->rxq->dev && !dev->netdev_ops->ndo_get_peer_dev)
		return XDP_TX;
	return XDP_REDIRECT | (u64)dev->ifindex << ACTION_BITS;
}

static __always_inline u64
forward(struct xdp_buff *xdp, const struct l4lb_pkt *pkt,
	struct l4lb_conn *conn, const struct l4lb_fast_device *d,
	struct l4lb_fast_exit *exit)
{
	const bool reply = exit->reply;
	void *l3 = xdp->data + ETH_HLEN;
	enum l4lb_fast_count count;
	union l4lb_hop hop;
	int room;

	count = reply ? l4lb_fast_reply_exit(NULL, conn, d, pkt->flow.af, exit) :
			l4lb_fast_request_exit(conn, exit);
	if (unlikely(count != L4LB_FAST_SENT ||
		     l4lb_fast_is_wrapped(exit, d->ln) ||
		     is_watched(conn, reply)))
		return XDP_PASS;
	room = room_for(xdp, conn, reply);
	if (unlikely(room < 0 || !l4lb_dst_fits(exit->dst, exit->len + room)))
		return XDP_PASS;
	if (unlikely(!takes_frames(exit))) {
		this_cpu_inc(d->ln->fast_counts[L4LB_XDP_EXIT]);
		return XDP_PASS;
	}
	/* One that is not known well is asked about, and answers or is used on. */
	if (unlikely(!(READ_ONCE(exit->neigh->nud_state) & NUD_CONNECTED)) &&
	    neigh_event_send(exit->neigh, NULL))
		return XDP_PASS;
	hop = reply ? l4lb_neigh_hop(exit->neigh) :
		      l4lb_route_hop(d->ln, exit->route, exit->neigh);

	l4lb_fast_account(conn, pkt, exit->len, reply);
	if (!exit->begun)
		l4lb_fast_advance(conn, pkt, reply);
	this_cpu_inc(d->ln->fast_counts[L4LB_FAST_XDP]);
	xdp->data_end = l3 + exit->len;		/* without padding */
	l3 = rework(l3, pkt, conn, exit, room);
	return leave(xdp, l3, reply ? pkt->flow.af : exit->route->af, exit, hop);
}

/* Where the packet of a frame for this host is.  False: it is not handled here. */
static __always_inline bool find_packet(struct xdp_buff *xdp,
					const struct l4lb_fast_device *d,
					struct l4lb_fast_view *view)
{
	const struct ethhdr *eth = xdp->data;

	if (xdp->data + ETH_HLEN > xdp->data_end || xdp_buff_has_frags(xdp) ||
	    !ether_addr_equal(eth->h_dest, d->ops.dev->dev_addr) ||
	    unlikely(is_spare(xdp->rxq->dev)))
		return false;
	view->data = xdp->data + ETH_HLEN;
	view->linear = xdp->data_end - view->data;
	view->all = view->linear;
	return true;
}

/* Looks last, because only packets that could be taken are to be counted. */
static __always_inline bool is_hidden(const struct xdp_buff *xdp,
				      const struct l4lb_fast_device *d)
{
	if (likely(!l4lb_xdp_is_hiding(d, xdp->rxq->dev)))
		return false;
	this_cpu_inc(d->ln->fast_counts[L4LB_XDP_OFFLOAD]);
	return true;
}

/* The way out is checked later: if it is none for frames, the packet finds its
 * connection again at ingress.
 */
static __always_inline struct l4lb_conn *
begin_flow(const struct xdp_buff *xdp, const struct l4lb_fast_view *view,
	   const struct l4lb_pkt *pkt, struct l4lb_fast_device *d,
	   unsigned int len)
{
	const struct l4lb_fast_first first = {
		.view = view, .len = len, .watch = L4LB_FAST_WATCHED,
		.from = xdp->rxq->dev,
	};

	return l4lb_fast_begin(d, pkt, &first);
}

/* One copy for each family. */
static __always_inline u64 handle(struct xdp_buff *xdp, struct l4lb_fast_device *d,
				  const struct l4lb_fast_view *view, u8 af)
{
	struct l4lb_fast_exit exit __l4lb_unset;
	struct l4lb_conn *conn;
	struct l4lb_pkt pkt __l4lb_unset;

	if (l4lb_fast_read_headers(view, af, &pkt, &exit.len) != L4LB_FAST_SENT ||
	    l4lb_fast_leaves_opening(d->ln, &pkt))
		return XDP_PASS;
	conn = l4lb_conn_find_here(d->ln, &pkt.flow, af, false, &exit.reply);
	exit.begun = !conn;
	if (exit.begun)
		conn = begin_flow(xdp, view, &pkt, d, exit.len);
	if (!conn || (exit.begun ? l4lb_fast_check_first(conn) :
		      l4lb_fast_check_conn(conn, &pkt, d, exit.reply)) !=
		     L4LB_FAST_SENT)
		return XDP_PASS;
	if (!exit.begun && (is_hidden(xdp, d) ||
			    (af == AF_INET && unlikely(ip_fast_csum(view->data, 5)))))
		return XDP_PASS;
	return forward(xdp, &pkt, conn, d, &exit);
}

static noinline u64 handle_ipv6(struct xdp_buff *xdp, struct l4lb_fast_device *d,
				const struct l4lb_fast_view *view)
{
	return handle(xdp, d, view, AF_INET6);
}

static __always_inline u64 handle_frame(struct xdp_buff *xdp, struct l4lb_fast_device *d)
{
	struct l4lb_fast_view view __l4lb_unset;
	const struct ethhdr *eth = xdp->data;

	if (!find_packet(xdp, d, &view))
		return XDP_PASS;
	if (eth->h_proto == htons(ETH_P_IP))
		return handle(xdp, d, &view, AF_INET);
	return eth->h_proto == htons(ETH_P_IPV6) ? handle_ipv6(xdp, d, &view) : XDP_PASS;
}

__bpf_kfunc_start_defs();

/**
 * l4lb_xdp() - forward a frame, if its flow is on the fast path
 * @ctx: the frame
 * @ifindex: the device that the program is attached to, which for a bond is not
 *	the one that the frame came in by
 *
 * Exported for tests/modules/l4lb_bare.c.
 *
 * Context: softirq.
 * Return: XDP_PASS, with the frame as it was; XDP_TX; or XDP_REDIRECT, with the
 * ifindex to redirect to above the lowest four bits.
 */
__bpf_kfunc u64 l4lb_xdp(struct xdp_md *ctx, u32 ifindex)
{
	struct xdp_buff *xdp = (struct xdp_buff *)ctx;
	struct l4lb_fast_device *d = NULL;
	struct l4lb_fast *fast;
	u64 result = XDP_PASS;

	/* A test run may call it elsewhere. */
	if (!softirq_count())
		return XDP_PASS;
	/* BH is off, which is an RCU section; lockdep wants a lock, too. */
	if (IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_lock();
	/* Pairs with l4lb_fast_create(). */
	fast = smp_load_acquire(&l4lb_net_rcu(dev_net(xdp->rxq->dev))->fast);
	if (fast)
		d = l4lb_fast_device_of(fast, ifindex);
	if (d)
		result = handle_frame(xdp, d);
	if (IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_unlock();
	return result;
}
EXPORT_SYMBOL_GPL(l4lb_xdp);

__bpf_kfunc_end_defs();

BTF_KFUNCS_START(l4lb_xdp_ids)
BTF_ID_FLAGS(func, l4lb_xdp)
BTF_KFUNCS_END(l4lb_xdp_ids)

static const struct btf_kfunc_id_set xdp_kfuncs = {
	.owner	= THIS_MODULE,
	.set	= &l4lb_xdp_ids,
};

/* Without types of its own the module has no XDP, and the kernel's log says so. */
void __init l4lb_xdp_init(void)
{
	register_btf_kfunc_id_set(BPF_PROG_TYPE_XDP, &xdp_kfuncs);
}

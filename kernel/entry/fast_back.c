// SPDX-License-Identifier: GPL-2.0
/*
 * Ways back.  Replies take the route that the stack has chosen, by whatever
 * rules.  A connection stores the number of that route, together with the device
 * by which its replies come in.
 *
 * Routes end often: with each change of any route, all of IPv4 do.  Then the next
 * reply of each flow looks its route up.  If that leads to the same next hop, the
 * firewall has seen the flow take it, and the flow gets the new route's number.
 * Otherwise the reply takes the stack.
 *
 * So a flow whose route has changed notices, however many other flows have kept
 * theirs.  The price is one number for each route and change: there are 16,383,
 * and each rests for nine seconds.  Per-CPU copies of an IPv6 route share one.
 */
#include "entry/fast_back.h"

#include <net/ip6_route.h>
#include <net/route.h>

#include "service/route.h"

#define SWEEP_BUCKETS	32	/* looked at for each new way */

/* What a way back is found by. */
struct want {
	struct dst_entry	*dst;
	const void		*key;
	u32			device;
	struct l4lb_fast_hop	hop;
	u8			af;
};

static struct l4lb_fast_hop hop_of(const struct dst_entry *dst, u8 af)
{
	struct l4lb_fast_hop hop = { };

	hop.ifindex = READ_ONCE(dst->dev)->ifindex;
	if (af == AF_INET) {
		const struct rtable *rt = dst_rtable(dst);

		hop.family = rt->rt_gw_family;
		if (hop.family == AF_INET6)
			hop.gateway.in6 = rt->rt_gw6;
		else if (hop.family)
			hop.gateway.ip = rt->rt_gw4;
	} else {
		const struct rt6_info *rt = dst_rt6_info(dst);

		if (rt->rt6i_flags & RTF_GATEWAY) {
			hop.family = AF_INET6;
			hop.gateway.in6 = rt->rt6i_gateway;
		}
	}
	return hop;
}

static bool same_hop(const struct l4lb_fast_hop *a,
		     const struct l4lb_fast_hop *b)
{
	return a->ifindex == b->ifindex && a->family == b->family &&
	       nf_inet_addr_cmp(&a->gateway, &b->gateway);
}

/* All per-CPU copies of an IPv6 route end together. */
static const void *key_of(const struct dst_entry *dst, u8 af)
{
	const struct rt6_info *rt;

	if (af == AF_INET)
		return dst;
	rt = dst_rt6_info(dst);
	return (rt->rt6i_flags & RTF_PCPU ? rcu_access_pointer(rt->from) :
					    NULL) ?: (const void *)dst;
}

static unsigned long hash_of(const void *key, u32 device)
{
	return (unsigned long)key + device;
}

/* The route may have ended.  RCU or the lock. */
static struct l4lb_fast_back *find(struct l4lb_fast *fast,
				   const struct want *want)
{
	struct l4lb_fast_back *back;

	hash_for_each_possible_rcu(fast->ways, back, node,
				   hash_of(want->key, want->device),
				   lockdep_is_held(&fast->lock))
		if (back->key == want->key && back->device == want->device &&
		    same_hop(&back->hop, &want->hop))
			return back;
	return NULL;
}

/* ---- numbers ---- */

static void end(struct l4lb_fast *fast, struct l4lb_fast_back *back)
{
	struct dst_entry *dst = back->dst;

	lockdep_assert_held(&fast->lock);
	hash_del_rcu(&back->node);
	WRITE_ONCE(back->dst, NULL);
	back->ended = jiffies;
	list_add_tail(&back->rest, &fast->resting);
	/* Packets may still use it: it is freed after a grace period. */
	dst_release(dst);
}

/* End what has ended, in a few buckets. */
static void sweep(struct l4lb_fast *fast)
{
	struct l4lb_fast_back *back;
	struct hlist_node *next;
	unsigned int i;

	for (i = 0; i < SWEEP_BUCKETS; i++) {
		fast->swept = (fast->swept + 1) % HASH_SIZE(fast->ways);
		hlist_for_each_entry_safe(back, next, &fast->ways[fast->swept],
					  node)
			if (!l4lb_fast_back_dst(back))
				end(fast, back);
	}
}

static struct l4lb_fast_back __rcu **slot_of(struct l4lb_fast *fast,
					     unsigned int number)
{
	struct l4lb_fast_page *page =
		fast->pages[number >> L4LB_FAST_PAGE_BITS];

	return &page->back[number & ((1 << L4LB_FAST_PAGE_BITS) - 1)];
}

/* A number that has rested, or else a new one; 0: there is none. */
static u16 number_get(struct l4lb_fast *fast)
{
	struct l4lb_fast_back *old =
		list_first_entry_or_null(&fast->resting, struct l4lb_fast_back,
					 rest);
	struct l4lb_fast_page **page;
	unsigned int number;

	if (old && time_after(jiffies, old->ended + L4LB_FAST_REST)) {
		number = old->number;
		list_del(&old->rest);
		rcu_assign_pointer(*slot_of(fast, number), NULL);
		kfree_rcu(old, rcu);
		return number;
	}
	number = fast->last_back + 1;
	if (number >> L4LB_FAST_BACK_BITS)
		return 0;
	page = &fast->pages[number >> L4LB_FAST_PAGE_BITS];
	if (!*page)
		*page = kzalloc(sizeof(**page), GFP_ATOMIC | __GFP_NOWARN);
	if (!*page)
		return 0;
	fast->last_back = number;
	return number;
}

static u16 begin(struct l4lb_fast *fast, const struct want *want)
{
	struct l4lb_fast_back *back;

	lockdep_assert_held(&fast->lock);
	back = kzalloc(sizeof(*back), GFP_ATOMIC | __GFP_NOWARN);
	if (!back)
		return 0;
	if (!dst_hold_safe(want->dst))
		goto free;
	back->number = number_get(fast);
	if (!back->number)
		goto release;
	back->dst = want->dst;
	if (want->af == AF_INET6)
		back->cookie = rt6_get_cookie(dst_rt6_info(want->dst));
	back->device = want->device;
	back->hop = want->hop;
	back->key = want->key;
	rcu_assign_pointer(*slot_of(fast, back->number), back);
	hash_add_rcu(fast->ways, &back->node,
		     hash_of(want->key, want->device));
	/* The device may be down, and its notifier may have run before. */
	if (!netif_running(want->dst->dev))
		end(fast, back);
	return back->number;

release:
	dst_release(want->dst);
free:
	kfree(back);
	return 0;
}

static noinline u16 find_or_begin(struct l4lb_fast *fast,
				  const struct want *want)
{
	struct l4lb_fast_back *back;
	u16 number;

	spin_lock(&fast->lock);
	back = find(fast, want);
	if (back && l4lb_fast_back_dst(back)) {
		number = back->number;
	} else {
		if (back)
			end(fast, back);
		sweep(fast);
		number = begin(fast, want);
	}
	spin_unlock(&fast->lock);
	return number;
}

u16 l4lb_fast_back_number(struct l4lb_fast *fast, struct dst_entry *dst, u8 af,
			  u32 device)
{
	const struct want want = {
		.dst	= dst,
		.key	= key_of(dst, af),
		.device	= device,
		.hop	= hop_of(dst, af),
		.af	= af,
	};
	const struct l4lb_fast_back *back = find(fast, &want);

	if (likely(back && l4lb_fast_back_dst(back)))
		return back->number;
	return find_or_begin(fast, &want);
}

/* ---- connections ---- */

void l4lb_fast_back_store(struct l4lb_conn *conn, u16 number)
{
	int old = atomic_read(&conn->flags), new;

	do {
		new = (old & (BIT(L4LB_CONN_BACK) - 1)) |
		      (u32)number << L4LB_CONN_BACK;
	} while (new != old && !atomic_try_cmpxchg(&conn->flags, &old, new));
}

/* The route by which the stack would forward @skb; NULL: none.  For IPv4, @skb
 * gets it, too.
 */
static struct dst_entry *look_up(struct net *net, struct sk_buff *skb, u8 af)
{
	struct dst_entry *dst;

	if (af == AF_INET) {
		const struct iphdr *iph = ip_hdr(skb);

		if (ip_route_input_noref(skb, iph->daddr, iph->saddr, iph->tos,
					 skb->dev))
			return NULL;
		dst = skb_dst(skb);
		if (dst_rtable(dst)->rt_type != RTN_UNICAST)
			return NULL;
	} else {
		const struct ipv6hdr *iph = ipv6_hdr(skb);
		struct flowi6 fl6 = {
			.flowi6_iif	= skb->dev->ifindex,
			.daddr		= iph->daddr,
			.saddr		= iph->saddr,
			.flowlabel	= ip6_flowinfo(iph),
			.flowi6_proto	= iph->nexthdr,
		};

		dst = ip6_route_input_lookup(net, skb->dev, &fl6, skb,
					     RT6_LOOKUP_F_HAS_SADDR |
					     RT6_LOOKUP_F_DST_NOREF);
		if (dst_rt6_info(dst)->rt6i_flags & (RTF_LOCAL | RTF_ANYCAST))
			return NULL;
	}
	return dst->error || dst->lwtstate || dst_xfrm(dst) ? NULL : dst;
}

/**
 * l4lb_fast_back_renew() - look up the route of a reply whose way has ended
 * @fast: fast path of the namespace
 * @conn: its connection
 * @skb: the reply as it came in, without a route; it has none afterwards
 * @back: the way of @conn's replies up to now
 *
 * With routing rules a route may depend on marks and on the translated source:
 * then only the stack finds it.
 *
 * Context: softirq, RCU.
 * Return: a route with the same next hop; NULL: leave the reply to the stack.
 */
noinline struct dst_entry *
l4lb_fast_back_renew(struct l4lb_fast *fast, struct l4lb_conn *conn,
		     struct sk_buff *skb, const struct l4lb_fast_back *back)
{
	struct net *net = fast->ln->net;
	struct dst_entry *dst;
	struct l4lb_fast_hop hop;
	u16 number = 0;

	/* A lookup writes its result into the skb. */
	if (l4lb_net_has_rules(net, conn->af) || skb_shared(skb))
		return NULL;
	dst = look_up(net, skb, conn->af);
	if (dst) {
		hop = hop_of(dst, conn->af);
		if (same_hop(&hop, &back->hop))
			number = l4lb_fast_back_number(fast, dst, conn->af,
						       back->device);
	}
	skb_dst_drop(skb);
	if (!number)
		return NULL;
	l4lb_fast_back_store(conn, number);
	return dst;
}

/* ---- life ---- */

void l4lb_fast_back_flush(struct l4lb_fast *fast, const struct net_device *dev)
{
	struct l4lb_fast_back *back;
	struct hlist_node *next;
	unsigned int i;

	spin_lock_bh(&fast->lock);
	hash_for_each_safe(fast->ways, i, next, back, node)
		if (!dev || back->dst->dev == dev)
			end(fast, back);
	spin_unlock_bh(&fast->lock);
}

int l4lb_fast_back_init(struct l4lb_fast *fast)
{
	hash_init(fast->ways);
	INIT_LIST_HEAD(&fast->resting);
	spin_lock_init(&fast->lock);
	/* Number 0: none. */
	fast->pages[0] = kzalloc(sizeof(*fast->pages[0]), GFP_KERNEL);
	return fast->pages[0] ? 0 : -ENOMEM;
}

/* No packet is left that could use it. */
void l4lb_fast_back_free(struct l4lb_fast *fast)
{
	struct l4lb_fast_back *back, *next;
	unsigned int i;

	l4lb_fast_back_flush(fast, NULL);
	list_for_each_entry_safe(back, next, &fast->resting, rest)
		kfree(back);
	for (i = 0; i < ARRAY_SIZE(fast->pages); i++)
		kfree(fast->pages[i]);
}

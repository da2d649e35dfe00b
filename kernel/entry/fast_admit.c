// SPDX-License-Identifier: GPL-2.0
/*
 * Which flows take the fast path, and the routes of their replies.
 *
 * A direction is admitted when one of its packets has reached the end of
 * POST_ROUTING: then the firewall and routing have let it pass.  A packet
 * queued to user space admits nothing, because the verdict comes later.
 *
 * Replies take the route that the stack has chosen, by whatever rules.  The
 * flow stores the number of that route; there are few such routes.  When a
 * route ends, replies of all flows with its number go through the stack again.
 */
#include "entry/fast_admit.h"

#include <net/ip6_route.h>
#include <net/route.h>

#include "base/parse.h"
#include "conn/lookup.h"
#include "entry/fast_device.h"

DEFINE_PER_CPU(const void *, l4lb_fast_request);

/* ---- numbers ---- */

u8 l4lb_fast_id_get(struct l4lb_fast_ids *ids)
{
	unsigned int i, id = ids->last;

	for (i = 1; i < L4LB_FAST_IDS; i++) {
		id = id % (L4LB_FAST_IDS - 1) + 1;	/* 1 to 255 */
		/* freed[] is 0 if the number was never used. */
		if (test_bit(id, ids->used) ||
		    (ids->freed[id] &&
		     time_before(jiffies, ids->freed[id] + L4LB_FAST_TERM + HZ)))
			continue;
		__set_bit(id, ids->used);
		ids->last = id;
		return id;
	}
	return 0;
}

void l4lb_fast_id_put(struct l4lb_fast_ids *ids, u8 id)
{
	__clear_bit(id, ids->used);
	ids->freed[id] = jiffies | 1;
}

/* ---- routes of replies ---- */

static void back_free_rcu(struct rcu_head *head)
{
	struct l4lb_fast_back *back =
		container_of(head, struct l4lb_fast_back, rcu);

	dst_release(back->dst);
	kfree(back);
}

static void back_drop(struct l4lb_fast *fast, u8 id)
{
	struct l4lb_fast_back *back;

	lockdep_assert_held(&fast->lock);
	back = rcu_replace_pointer(fast->back[id], NULL,
				   lockdep_is_held(&fast->lock));
	l4lb_fast_id_put(&fast->back_ids, id);
	call_rcu(&back->rcu, back_free_rcu);
}

/* Drop the routes through @dev; NULL: all routes. */
void l4lb_fast_back_flush(struct l4lb_fast *fast, const struct net_device *dev)
{
	const struct l4lb_fast_back *back;
	unsigned int id;

	spin_lock_bh(&fast->lock);
	for_each_set_bit(id, fast->back_ids.used, L4LB_FAST_IDS) {
		back = rcu_dereference_protected(fast->back[id],
						 lockdep_is_held(&fast->lock));
		if (!dev || back->dst->dev == dev)
			back_drop(fast, id);
	}
	spin_unlock_bh(&fast->lock);
}

struct dst_entry *l4lb_fast_back_get(const struct l4lb_fast *fast, u8 id)
{
	const struct l4lb_fast_back *back = rcu_dereference(fast->back[id]);

	return back ? dst_check(back->dst, back->cookie) : NULL;
}

static u8 back_new(struct l4lb_fast *fast, struct dst_entry *dst, u8 af)
{
	struct l4lb_fast_back *back = kmalloc(sizeof(*back), GFP_ATOMIC);
	u8 id;

	if (!back)
		return 0;
	if (!dst_hold_safe(dst))
		goto free;
	id = l4lb_fast_id_get(&fast->back_ids);
	if (!id)
		goto release;
	back->dst = dst;
	back->cookie = af == AF_INET6 ? rt6_get_cookie(dst_rt6_info(dst)) : 0;
	rcu_assign_pointer(fast->back[id], back);
	/* The device may be down, and its notifier may have run before. */
	if (!netif_running(dst->dev))
		back_drop(fast, id);
	return id;

release:
	dst_release(dst);
free:
	kfree(back);
	return 0;
}

/* Find the number of a route, or allocate one; 0: failed. */
static u8 back_id(struct l4lb_fast *fast, struct dst_entry *dst, u8 af)
{
	const struct l4lb_fast_back *back;
	unsigned int id;
	u8 found = 0;

	spin_lock(&fast->lock);
	for_each_set_bit(id, fast->back_ids.used, L4LB_FAST_IDS) {
		back = rcu_dereference_protected(fast->back[id],
						 lockdep_is_held(&fast->lock));
		if (!dst_check(back->dst, back->cookie))
			back_drop(fast, id);
		else if (back->dst == dst)
			found = id;
	}
	if (!found)
		found = back_new(fast, dst, af);
	spin_unlock(&fast->lock);
	return found;
}

/* ---- admission ---- */

/* After a term both directions must be admitted again; the first one to be
 * admitted starts the next term.
 */
void l4lb_fast_admit(struct l4lb_conn *conn, bool reply, u8 device)
{
	bool begins = l4lb_fast_term_over(l4lb_conn_net(conn), conn);
	int old = atomic_read(&conn->flags), new;

	do {
		new = old & ~(0xffU << l4lb_fast_device_shift(reply));
		new |= (u32)device << l4lb_fast_device_shift(reply);
		if (begins)
			new &= ~(0xffU << l4lb_fast_device_shift(!reply));
	} while (new != old && !atomic_try_cmpxchg(&conn->flags, &old, new));
	smp_wmb();	/* clear the other direction before the new term */
	if (begins)
		WRITE_ONCE(conn->admitted, (u32)jiffies);
}

static u8 device_id(struct l4lb_fast *fast, const struct net_device *dev)
{
	const struct l4lb_fast_device *d;

	d = dev ? xa_load(&fast->devices, dev->ifindex) : NULL;
	return d ? d->id : 0;
}

void l4lb_fast_admit_request(struct l4lb_conn *conn, const struct sk_buff *skb,
			     const struct net_device *in)
{
	struct l4lb_fast *fast = READ_ONCE(l4lb_conn_net(conn)->fast);
	bool left = this_cpu_read(l4lb_fast_request) == skb;
	u8 device;

	this_cpu_write(l4lb_fast_request, NULL);
	if (!left)
		return;
	device = device_id(fast, in);
	if (device)
		l4lb_fast_admit(conn, false, device);
}

static void admit_reply(struct sk_buff *skb, const struct nf_hook_state *state,
			struct l4lb_fast *fast, u8 af, u8 device)
{
	struct l4lb_pkt pkt = { .hook = state->hook };
	struct dst_entry *dst = skb_dst(skb);
	struct l4lb_flow request;
	struct l4lb_conn *conn;
	u8 id;

	if (l4lb_parse_packet(skb, af, 0, false, &pkt) != L4LB_PARSE_OK)
		return;
	request = l4lb_flow_inverse(&pkt.flow);
	conn = l4lb_conn_find_in(l4lb_net(state->net), &request);
	if (!conn || conn->method != IP_VS_CONN_F_MASQ)
		return;
	if (dst->lwtstate || dst_xfrm(dst))
		return;
	id = back_id(fast, dst, af);
	if (!id)
		return;
	WRITE_ONCE(conn->fast_back, id);
	l4lb_fast_admit(conn, true, device);
}

/* Looks at requests that were forwarded and replies that were translated. */
void l4lb_fast_leaving(struct sk_buff *skb, const struct nf_hook_state *state,
		       u8 af)
{
	struct l4lb_net *ln = l4lb_net(state->net);
	struct l4lb_fast *fast = READ_ONCE(ln->fast);
	u8 device;

	if (!skb->ipvs_property || !fast)
		return;
	if (this_cpu_read(l4lb_fast_request)) {
		this_cpu_write(l4lb_fast_request, skb);
		return;
	}
	device = device_id(fast, state->in);
	if (device)
		admit_reply(skb, state, fast, af, device);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Which flows take the fast path.
 *
 * A direction is admitted when one of its packets has reached the end of
 * POST_ROUTING: then the firewall and routing have let it pass.  A packet
 * queued to user space admits nothing, because the verdict comes later.
 */
#include "entry/fast_admit.h"

#include "base/parse.h"
#include "conn/lookup.h"
#include "entry/fast_device.h"

DEFINE_PER_CPU(const void *, l4lb_fast_request);
DEFINE_PER_CPU(struct l4lb_fast_reply, l4lb_fast_reply);

/* After a term both directions must be admitted again; the first one to be
 * admitted starts the next term.
 */
void l4lb_fast_admit(struct l4lb_conn *conn, bool reply, u16 number)
{
	bool begins = l4lb_fast_term_over(l4lb_conn_net(conn), conn);

	if (reply || begins)
		l4lb_fast_back_store(conn, reply ? number : 0);
	if (!reply || begins)
		WRITE_ONCE(conn->fast_in, reply ? 0 : number);
	smp_wmb();	/* clear the other direction before the new term */
	if (begins)
		WRITE_ONCE(conn->admitted, (u32)jiffies);
}

static struct l4lb_fast_device *device_of(struct l4lb_fast *fast,
					  const struct net_device *dev)
{
	return dev ? l4lb_fast_device_of(fast, dev->ifindex) : NULL;
}

void l4lb_fast_admit_request(struct l4lb_conn *conn, const struct sk_buff *skb,
			     const struct net_device *in)
{
	struct l4lb_fast *fast = READ_ONCE(l4lb_conn_net(conn)->fast);
	bool left = this_cpu_read(l4lb_fast_request) == skb;
	struct l4lb_fast_device *d;
	u8 id;

	this_cpu_write(l4lb_fast_request, NULL);
	if (!left)
		return;
	d = device_of(fast, in);
	id = d ? l4lb_fast_device_id(d) : 0;
	if (id)
		l4lb_fast_admit(conn, false, id);
}

/* Must its replies stay where conntrack, or conn/latency.c, sees them? */
static bool needs_stack(const struct l4lb_conn *conn)
{
	int flags = atomic_read(&conn->flags);

	if (likely(!(flags & (BIT(L4LB_CONN_TRACKED) | BIT(L4LB_CONN_LARGE)))))
		return false;
	return flags & BIT(L4LB_CONN_TRACKED) ||
	       READ_ONCE(conn->uses) & L4LB_USE_LATENCY;
}

/* A translated reply, at FORWARD: may its end at POST_ROUTING admit it? */
void l4lb_fast_expect_reply(const struct sk_buff *skb, struct l4lb_conn *conn)
{
	const struct l4lb_net *ln = l4lb_conn_net(conn);
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	if (!svc || (conn->proto != IPPROTO_TCP && conn->proto != IPPROTO_UDP) ||
	    needs_stack(conn) ||
	    l4lb_fast_mode(ln, svc) == L4LB_FAST_PATH_OFF ||
	    l4lb_fast_has_ipsec(ln->net))
		return;
	if (!skb_dst_is_noref(skb))
		conn = NULL;		/* it was rerouted */
	this_cpu_write(l4lb_fast_reply.conn, conn);
	this_cpu_write(l4lb_fast_reply.skb, skb);
}

static struct l4lb_conn *find_again(struct sk_buff *skb,
				    const struct nf_hook_state *state, u8 af)
{
	struct l4lb_pkt pkt = { .hook = state->hook };
	struct l4lb_flow request;

	if (l4lb_parse_packet(skb, af, 0, false, &pkt) != L4LB_PARSE_OK)
		return NULL;
	request = l4lb_flow_inverse(&pkt.flow);
	return l4lb_conn_find_in(l4lb_net_rcu(state->net), &request);
}

static void admit_reply(struct sk_buff *skb, const struct nf_hook_state *state,
			struct l4lb_fast *fast, u8 af)
{
	struct l4lb_conn *conn = this_cpu_read(l4lb_fast_reply.conn);
	const struct l4lb_fast_device *d = device_of(fast, state->in);
	struct dst_entry *dst = skb_dst(skb);
	u16 number;

	if (!d || dst->lwtstate || dst_xfrm(dst))
		return;
	if (!conn)
		conn = find_again(skb, state, af);
	else if (!skb_dst_is_noref(skb))
		return;		/* it was queued */
	if (!conn || conn->method != IP_VS_CONN_F_MASQ)
		return;
	number = l4lb_fast_back_number(fast, dst, af, d->serial);
	if (number)
		l4lb_fast_admit(conn, true, number);
}

/* Looks at requests that were forwarded and replies that were translated. */
void l4lb_fast_leaving(struct sk_buff *skb, const struct nf_hook_state *state,
		       u8 af)
{
	struct l4lb_fast *fast;

	if (!skb->ipvs_property)
		return;
	if (this_cpu_read(l4lb_fast_request)) {
		this_cpu_write(l4lb_fast_request, skb);
		return;
	}
	if (this_cpu_read(l4lb_fast_reply.skb) != skb)
		return;
	l4lb_fast_forget_reply();
	fast = READ_ONCE(l4lb_net_rcu(state->net)->fast);
	if (fast)
		admit_reply(skb, state, fast, af);
}

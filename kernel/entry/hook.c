// SPDX-License-Identifier: GPL-2.0
/*
 * Netfilter hooks: the way of a packet.
 *
 *   client ---> PRE_ROUTING ---> LOCAL_IN ------> connection -> real server
 *                   |               (VIP is ours)  (or a new one: service,
 *                   |                               scheduler)
 *                   +----------> FORWARD -------> connection -> client
 *                                   (a real server's reply, NAT)
 *
 *   LOCAL_OUT does both for clients and real servers on this host.
 *
 * Priorities are those of ip_vs: after filtering, so the firewall sees a packet
 * first.  "out" handlers run before "in" handlers, so a reply of a known
 * connection is never scheduled.
 *
 * Handlers run under RCU with BH off; nothing here takes a reference.
 */
#include "entry/hook.h"

#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <net/netfilter/ipv6/nf_defrag_ipv6.h>

#include "base/drop.h"
#include "base/parse.h"
#include "conn/lookup.h"
#include "conn/conntrack.h"
#include "conn/count.h"
#include "conn/defence.h"
#include "conn/state.h"
#include "conn/watch.h"
#include "entry/fast_admit.h"
#include "forward/call.h"
#include "forward/checksum.h"
#include "forward/forward.h"
#include "forward/fragment.h"
#include "forward/full_nat.h"
#include "forward/icmp.h"
#include "forward/ipsec.h"
#include "forward/large_reply.h"
#include "forward/lazy.h"
#include "forward/nat.h"
#include "forward/one_packet.h"
#include "forward/others.h"
#include "forward/related.h"
#include "forward/reset.h"
#include "forward/schedule.h"
#include "forward/send.h"
#include "service/account.h"
#include "service/find.h"
#include "service/guard.h"
#include "service/server_table.h"
#include "sync/daemon.h"
#include "sync/send.h"

/* One test for most. */
static bool is_special(const struct l4lb_conn *conn)
{
	int flags = atomic_read(&conn->flags) &
		    (BIT(L4LB_CONN_ONE_PACKET) | BIT(L4LB_CONN_DUE) | BIT(L4LB_CONN_LARGE));

	return flags && (flags != BIT(L4LB_CONN_LARGE) ||
			 READ_ONCE(conn->uses) & (L4LB_USE_LATENCY | L4LB_USE_SNAT));
}

/* Forward one packet of @conn.  @begun: that is in the state after it already. */
static __always_inline unsigned int
deliver(struct sk_buff *skb, const struct l4lb_pkt *pkt, struct l4lb_conn *conn,
	bool begun)
{
	const struct net_device *in = skb->dev;
	unsigned int verdict;

	l4lb_account_in(conn->server, skb->len);
	if (l4lb_conn_count_packet(conn))
		l4lb_sync_counted(conn);
	if (!begun)
		l4lb_state_packet(conn, pkt, false);
	l4lb_reset_watch(conn, skb, pkt, skb->len);
	if (unlikely(is_special(conn))) {
		if (l4lb_conn_test(conn, L4LB_CONN_ONE_PACKET))
			return l4lb_forward(skb, pkt, conn, 0);
		if (l4lb_conn_test(conn, L4LB_CONN_DUE))
			l4lb_sync_due(conn);
		if (l4lb_latency_request(conn, skb, pkt) || conn->method == L4LB_FULL_NAT)
			return l4lb_forward(skb, pkt, conn, 0);
	}
	l4lb_fast_expect_request();
	verdict = l4lb_forward(skb, pkt, conn, 0);
	l4lb_fast_admit_request(conn, skb, in);
	return verdict;
}

/* May this packet be the first of a flow?  The local stack answers any other. */
static bool may_start(const struct l4lb_pkt *pkt, const struct l4lb_net *ln)
{
	if (!l4lb_flow_may_start(&pkt->flow) || l4lb_pkt_aborts(pkt))
		return false;
	switch (pkt->flow.proto) {
	case IPPROTO_TCP:
		return l4lb_pkt_opens(pkt) || READ_ONCE(ln->sysctl.sloppy_tcp);
	case IPPROTO_SCTP:
		return l4lb_pkt_opens(pkt) || READ_ONCE(ln->sysctl.sloppy_sctp);
	default:
		return true;
	}
}

static unsigned int refuse(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   const struct l4lb_net *ln, enum l4lb_drop reason)
{
	l4lb_drop(ln, reason);
	if (reason == L4LB_DROP_NO_DEST)
		l4lb_icmp_no_port(skb, pkt);
	return NF_DROP;
}

static unsigned int schedule_new(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				 struct l4lb_net *ln, struct l4lb_service *svc, bool again)
{
	enum l4lb_drop reason = L4LB_DROP_NO_DEST;
	bool begins = l4lb_pkt_begins(pkt);
	struct l4lb_conn once __l4lb_unset;
	struct l4lb_conn *conn;

	if (l4lb_service_calls(svc))
		conn = l4lb_schedule_call(svc, &(struct l4lb_arrival){ skb, pkt, again },
					  &once, &reason);
	else
		conn = unlikely(again) ?
		       l4lb_schedule_again(svc, &pkt->flow, begins ? pkt : NULL, &once, &reason) :
		       l4lb_schedule_here(svc, &pkt->flow, begins ? pkt : NULL, &once, &reason);
	if (!conn) {
		if (reason == L4LB_DROP_LIMIT)
			l4lb_schedule_refuse(svc, skb, pkt);
		return refuse(skb, pkt, ln, reason);
	}
	if (l4lb_conn_test(conn, L4LB_CONN_TRACKED))
		l4lb_ct_renew(skb, ln->net, pkt);
	return deliver(skb, pkt, conn, begins);
}

/* No service takes it: it is for this host, unless its address is guarded. */
static unsigned int handle_other(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				 struct l4lb_net *ln)
{
	u32 guard = l4lb_guard_find(skb, pkt, ln);

	if (likely(guard == L4LB_GUARD_OFF) || !l4lb_checksum_ok(skb, pkt, ln))
		return NF_ACCEPT;
	if (guard == L4LB_GUARD_REJECT)
		l4lb_reset_refuse(skb, pkt, ln);
	l4lb_drop(ln, L4LB_DROP_GUARD);
	return NF_DROP;
}

/* For a service with conn-state lazy.  -ENOENT: that has no effect for this packet. */
static noinline int handle_lazy(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				struct l4lb_net *ln, struct l4lb_service *svc)
{
	struct l4lb_server *server;
	struct l4lb_conn once __l4lb_unset;
	struct l4lb_conn *conn;

	server = l4lb_lazy_server(svc, skb, &pkt->flow, pkt->hook);
	if (!server)
		return -ENOENT;
	if (!l4lb_checksum_ok(skb, pkt, ln))
		return NF_ACCEPT;
	if (l4lb_pkt_opens(pkt) && l4lb_defence_drops_packet(ln))
		return refuse(skb, pkt, ln, L4LB_DROP_PACKET);
	conn = l4lb_lazy_request(server, pkt, &once);
	return deliver(skb, pkt, conn, true);
}

/* @killed: the flow's connection was just killed: UDP goes on with another one. */
static unsigned int handle_new(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			       struct l4lb_net *ln, bool killed)
{
	struct l4lb_service *svc = NULL;
	bool starts = may_start(pkt, ln);
	struct l4lb_conn *conn;
	int verdict;

	if (l4lb_helper_used() && starts) {
		conn = l4lb_related_request(skb, pkt, ln);
		if (conn)
			return deliver(skb, pkt, conn, l4lb_pkt_begins(pkt));
	}
	if (starts || unlikely(READ_ONCE(ln->n_lazy)))
		svc = l4lb_service_lookup(ln, skb->mark, &pkt->flow);
	if (svc && l4lb_lazy_wanted(svc) && (!killed || starts)) {
		verdict = handle_lazy(skb, pkt, ln, svc);
		if (verdict >= 0)
			return verdict;
	}
	if (!svc || !starts)
		return handle_other(skb, pkt, ln);
	if (!l4lb_checksum_ok(skb, pkt, ln))
		return NF_ACCEPT;
	if (l4lb_defence_drops_packet(ln))
		return refuse(skb, pkt, ln, L4LB_DROP_PACKET);
	return schedule_new(skb, pkt, ln, svc,
			    killed && pkt->flow.proto == IPPROTO_UDP);
}

/* A client reuses a port: does its SYN need a new connection? */
static bool port_reused(const struct l4lb_conn *conn, const struct l4lb_net *ln)
{
	int mode = READ_ONCE(ln->sysctl.conn_reuse_mode);
	bool drains = READ_ONCE(conn->server->drains);

	if (drains && READ_ONCE(ln->sysctl.expire_nodest_conn))
		return true;
	if (!mode || l4lb_conn_test(conn, L4LB_CONN_CONTROLLED))
		return false;
	switch (READ_ONCE(conn->state)) {
	case L4LB_TCP_TIME_WAIT:
	case L4LB_TCP_CLOSE:
	case L4LB_SCTP_CLOSED:
		return true;
	case L4LB_TCP_FIN_WAIT:
		/* Replies are not seen, so it may not be over yet.  But reusing
		 * it would keep a draining server busy for ever.
		 */
		return (drains || mode & 2) &&
		       l4lb_conn_test(conn, L4LB_CONN_NO_OUTPUT);
	default:
		return false;
	}
}

/* Does a datagram for a draining server go to another one?  Only if its service
 * says so, and another server is usable.
 */
static bool moves_on(const struct l4lb_conn *conn)
{
	struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	return conn->proto == IPPROTO_UDP && svc &&
	       READ_ONCE(svc->policy.on_drain) == L4LB_DRAIN_MOVE &&
	       l4lb_service_usable(svc);
}

/* Tell both ends that the connection is over; the sender of a datagram gets an
 * ICMP error.
 */
static unsigned int end_lost(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			     struct l4lb_net *ln, struct l4lb_conn *conn)
{
	if (pkt->flow.proto == IPPROTO_UDP) {
		l4lb_icmp_no_port(skb, pkt);
	} else if (!l4lb_pkt_aborts(pkt)) {
		l4lb_reset_note(conn, skb, pkt, skb->len);
		l4lb_reset_both(conn);
	}
	l4lb_conn_end_early(conn, L4LB_END_LOST);
	l4lb_drop(ln, L4LB_DROP_DEST_GONE);
	return NF_DROP;
}

/* The real server was removed, or never added: another director has it. */
static unsigned int handle_lost(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				struct l4lb_net *ln, struct l4lb_conn *conn)
{
	u8 wanted = READ_ONCE(conn->server->on_loss);

	/* It is about to be added, if both directors are set up alike. */
	if (READ_ONCE(conn->server->placeholder) && !l4lb_pkt_opens(pkt)) {
		l4lb_drop(ln, L4LB_DROP_NO_DEST);
		return NF_DROP;
	}
	/* A SYN means that the client uses the port for a new connection. */
	if (l4lb_server_over(conn->server) || l4lb_pkt_opens(pkt) ||
	    (wanted == L4LB_LOSS_MOVE && pkt->flow.proto == IPPROTO_UDP) ||
	    (wanted == L4LB_LOSS_DEFAULT &&
	     READ_ONCE(ln->sysctl.expire_nodest_conn))) {
		l4lb_conn_kill(conn, L4LB_END_LOST);
		return handle_new(skb, pkt, ln, true);
	}
	if (wanted == L4LB_LOSS_MOVE || wanted == L4LB_LOSS_RESET)
		return end_lost(skb, pkt, ln, conn);
	/* The server may be added again: drop silently, so both ends wait. */
	l4lb_drop(ln, L4LB_DROP_DEST_GONE);
	return NF_DROP;
}

static unsigned int handle_known(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				 struct l4lb_net *ln, struct l4lb_conn *conn)
{
	bool drains = READ_ONCE(conn->server->drains);

	if (!l4lb_server_available(conn->server))
		return handle_lost(skb, pkt, ln, conn);
	if (!(l4lb_pkt_opens(pkt) && port_reused(conn, ln)) &&
	    !(drains && moves_on(conn)))
		return deliver(skb, pkt, conn, false);
	l4lb_conn_kill(conn, pkt->flow.proto == IPPROTO_UDP ?
		       L4LB_END_MOVED : L4LB_END_REUSED);
	return handle_new(skb, pkt, ln, true);
}

static __always_inline unsigned int
handle_in(struct sk_buff *skb, const struct nf_hook_state *state, u8 af)
{
	struct l4lb_net *ln = l4lb_net_rcu(state->net);
	struct l4lb_pkt pkt __l4lb_unset;
	struct l4lb_conn *conn;

	if (skb->ipvs_property || !skb_dst(skb) ||
	    (state->hook != NF_INET_LOCAL_OUT && skb->pkt_type != PACKET_HOST) ||
	    l4lb_sync_stands_by(ln))
		return NF_ACCEPT;
	if (af == AF_INET)
		l4lb_settle_options(skb);
	pkt.hook = state->hook;
	switch (l4lb_parse_packet(skb, af, 0, false, &pkt)) {
	case L4LB_PARSE_OK:
		break;
	case L4LB_PARSE_OTHER:
		if (state->hook == NF_INET_FORWARD)
			return NF_ACCEPT;	/* handle_forward_icmp() */
		if (l4lb_is_icmp(&pkt.flow))
			return l4lb_icmp_in(skb, &pkt, ln);
		if (l4lb_is_ipsec(&pkt.flow))
			return l4lb_ipsec_in(skb, &pkt, ln);
		if (READ_ONCE(ln->sysctl.ignore_tunneled))
			skb->ipvs_property = 1;	/* also skip its inner packet */
		return NF_ACCEPT;
	case L4LB_PARSE_BAD:
		l4lb_drop(ln, L4LB_DROP_HEADER);
		return NF_ACCEPT;
	case L4LB_PARSE_FRAGMENT:
		return NF_ACCEPT;
	}
	conn = l4lb_conn_find_in(ln, &pkt.flow);
	return conn ? handle_known(skb, &pkt, ln, conn) :
		      handle_new(skb, &pkt, ln, false);
}

/* Sysctl nonlocal_vip: services also take packets that this host forwards to
 * their address, which is not local.  The firewall's FORWARD rules have already
 * seen them.
 */
static __always_inline unsigned int
handle_forward(struct sk_buff *skb, const struct nf_hook_state *state, u8 af)
{
	const struct l4lb_net *ln = l4lb_net_rcu(state->net);

	if (likely(!READ_ONCE(ln->sysctl.nonlocal_vip)))
		return NF_ACCEPT;
	return handle_in(skb, state, af);
}

/* ICMP errors to a VIP that is not an address of this host (firewall marks). */
static __always_inline unsigned int
handle_forward_icmp(struct sk_buff *skb, const struct nf_hook_state *state,
		    u8 af)
{
	struct l4lb_pkt pkt __l4lb_unset;
	struct l4lb_net *ln;

	if (skb->ipvs_property || !skb_dst(skb))
		return NF_ACCEPT;
	if (af == AF_INET)
		l4lb_settle_options(skb);
	pkt.hook = state->hook;
	if (l4lb_parse_packet(skb, af, 0, false, &pkt) != L4LB_PARSE_OTHER ||
	    !l4lb_is_icmp(&pkt.flow))
		return NF_ACCEPT;
	/* It may be sent before another handler forgets an older packet. */
	l4lb_fast_forget_reply();
	ln = l4lb_net_rcu(state->net);
	return l4lb_sync_stands_by(ln) ? NF_ACCEPT :
					 l4lb_icmp_in(skb, &pkt, ln);
}

static unsigned int reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			  struct l4lb_conn *conn)
{
	unsigned int verdict;

	l4lb_account_out(conn->server, skb->len);
	l4lb_large_reply(skb, pkt, conn);
	l4lb_state_packet(conn, pkt, true);
	if (conn->method == IP_VS_CONN_F_MASQ) {
		verdict = l4lb_nat_reply(skb, pkt, conn, 0);
		if (verdict == NF_ACCEPT && pkt->hook == NF_INET_FORWARD)
			l4lb_fast_expect_reply(skb, conn);
		return verdict;
	}
	l4lb_forward_mark(skb, conn, true);
	return NF_ACCEPT;
}

/* A reply to a service that keeps no connections, or not yet.  -ENOENT: it is none. */
static noinline int reply_without(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				  struct l4lb_net *ln)
{
	struct l4lb_conn once __l4lb_unset;
	struct l4lb_conn *conn;

	if (l4lb_helper_used()) {
		conn = l4lb_related_reply(skb, pkt, ln);
		if (conn)
			return reply(skb, pkt, conn);
	}
	if (pkt->flow.proto == IPPROTO_UDP) {
		if (!READ_ONCE(ln->n_one_packet))
			return -ENOENT;
		conn = l4lb_call_begin(skb, pkt, ln);
		return conn ? reply(skb, pkt, conn) :
			      l4lb_one_packet_reply(skb, pkt, ln, &pkt->flow, 0);
	}
	conn = READ_ONCE(ln->n_lazy) ? l4lb_lazy_reply(ln, skb, pkt, &once) : NULL;
	if (!conn)
		return -ENOENT;
	l4lb_account_out(conn->server, skb->len);
	l4lb_large_reply(skb, pkt, conn);
	return l4lb_nat_reply(skb, pkt, conn, 0);
}

/* No connection: a reply without one, to a local end, or refused by nat_icmp_send. */
static unsigned int handle_stray(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				 struct l4lb_net *ln)
{
	if (unlikely(READ_ONCE(ln->n_one_packet) | READ_ONCE(ln->n_lazy) | READ_ONCE(ln->snat)) ||
	    l4lb_helper_used()) {
		int verdict = l4lb_full_nat_reply(skb, pkt, ln);

		if (verdict < 0)
			verdict = reply_without(skb, pkt, ln);
		if (verdict >= 0)
			return verdict;
	}
	if (likely(!READ_ONCE(ln->sysctl.nat_icmp_send)) ||
	    l4lb_pkt_aborts(pkt) || !l4lb_server_is_source(ln, &pkt->flow))
		return NF_ACCEPT;
	l4lb_icmp_no_port(skb, pkt);
	return NF_DROP;
}

static unsigned int handle_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				 struct l4lb_net *ln)
{
	struct l4lb_conn *conn = l4lb_conn_find_out(ln, &pkt->flow) ?:
				 l4lb_conn_find_passing(ln, &pkt->flow);

	return conn ? reply(skb, pkt, conn) : handle_stray(skb, pkt, ln);
}

/* A malformed packet cannot be rewritten by NAT.  If its ports say that it is a
 * reply, it must not leave with the real server's address.
 */
static unsigned int handle_broken(const struct sk_buff *skb, u8 af,
				  struct l4lb_pkt *pkt, struct l4lb_net *ln)
{
	if (l4lb_parse_packet(skb, af, 0, true, pkt) != L4LB_PARSE_OK ||
	    !l4lb_conn_find_out(ln, &pkt->flow))
		return NF_ACCEPT;
	l4lb_drop(ln, L4LB_DROP_HEADER);
	return NF_DROP;
}

static __always_inline unsigned int
handle_out(struct sk_buff *skb, const struct nf_hook_state *state, u8 af)
{
	struct l4lb_net *ln = l4lb_net_rcu(state->net);
	struct l4lb_pkt pkt __l4lb_unset;
	enum l4lb_parse parse;

	l4lb_fast_forget_reply();
	if (skb->ipvs_property || !skb_dst(skb))
		return NF_ACCEPT;
	if (af == AF_INET)
		l4lb_settle_options(skb);
	pkt.hook = state->hook;
	parse = l4lb_parse_packet(skb, af, 0, false, &pkt);
	/* IPv6 was reassembled before routing, see l4lb_hook_register(). */
	if (parse == L4LB_PARSE_FRAGMENT && af == AF_INET &&
	    pkt.hook == NF_INET_FORWARD && l4lb_fragment_is_ours(ln, &pkt.flow)) {
		if (l4lb_fragment_complete(skb, ln))
			return NF_STOLEN;
		parse = l4lb_parse_packet(skb, af, 0, false, &pkt);
	}
	if (parse == L4LB_PARSE_OK)
		return handle_reply(skb, &pkt, ln);
	if (parse == L4LB_PARSE_BAD)
		return handle_broken(skb, af, &pkt, ln);
	if (parse == L4LB_PARSE_OTHER && l4lb_is_icmp(&pkt.flow))
		return l4lb_icmp_out(skb, &pkt, ln);
	/* A fragment of AH or ESP has all that it needs. */
	if ((parse == L4LB_PARSE_OTHER || parse == L4LB_PARSE_FRAGMENT) &&
	    l4lb_is_ipsec(&pkt.flow))
		return l4lb_ipsec_out(skb, &pkt, ln);
	return NF_ACCEPT;
}

/* Runs last at POST_ROUTING. */
static __always_inline unsigned int
handle_leaving(struct sk_buff *skb, const struct nf_hook_state *state, u8 af)
{
	l4lb_fast_leaving(skb, state, af);
	return NF_ACCEPT;
}

/*
 * A packet to this host: mostly for a VIP, else a reply to a client on this
 * host.  One lookup finds either.  Replies with the VIP as their source are not
 * looked for: they cannot come in while the VIP is an address of this host.
 */
static __always_inline unsigned int
handle_local(struct sk_buff *skb, const struct nf_hook_state *state, u8 af)
{
	struct l4lb_net *ln = l4lb_net_rcu(state->net);
	struct l4lb_pkt pkt __l4lb_unset;
	struct l4lb_conn *conn;
	unsigned int verdict;
	bool is_reply;

	l4lb_fast_forget_reply();
	if (skb->ipvs_property || !skb_dst(skb))
		return NF_ACCEPT;
	if (af == AF_INET)
		l4lb_settle_options(skb);
	pkt.hook = state->hook;
	if (unlikely(l4lb_parse_packet(skb, af, 0, false, &pkt) !=
		     L4LB_PARSE_OK)) {
		verdict = handle_out(skb, state, af);
		return verdict == NF_ACCEPT ? handle_in(skb, state, af) :
					      verdict;
	}
	do {
		conn = l4lb_conn_find_both(ln, &pkt.flow, &is_reply);
	} while (is_reply && l4lb_conn_was_over(conn));
	if (is_reply)
		return reply(skb, &pkt, conn);
	verdict = handle_stray(skb, &pkt, ln);
	if (verdict != NF_ACCEPT || skb->pkt_type != PACKET_HOST ||
	    l4lb_sync_stands_by(ln))
		return verdict;
	return conn ? handle_known(skb, &pkt, ln, conn) :
		      handle_new(skb, &pkt, ln, false);
}

/* One copy of a handler per family.  Processes that send get BH off here. */
#define HANDLER(name, handler, af)					\
static noinline unsigned int						\
name##_bh_off(struct sk_buff *skb, const struct nf_hook_state *state)	\
{									\
	return handler(skb, state, af);					\
}									\
									\
static unsigned int name(void *priv, struct sk_buff *skb,		\
			 const struct nf_hook_state *state)		\
{									\
	unsigned int verdict;						\
									\
	if (likely(softirq_count()))					\
		return name##_bh_off(skb, state);			\
	local_bh_disable();						\
	verdict = name##_bh_off(skb, state);				\
	local_bh_enable();						\
	return verdict;							\
}

HANDLER(local_ipv4, handle_local, AF_INET)
HANDLER(in_ipv4, handle_in, AF_INET)
HANDLER(out_ipv4, handle_out, AF_INET)
HANDLER(icmp_ipv4, handle_forward_icmp, AF_INET)
HANDLER(forward_ipv4, handle_forward, AF_INET)
HANDLER(leaving_ipv4, handle_leaving, AF_INET)
HANDLER(local_ipv6, handle_local, AF_INET6)
HANDLER(in_ipv6, handle_in, AF_INET6)
HANDLER(out_ipv6, handle_out, AF_INET6)
HANDLER(icmp_ipv6, handle_forward_icmp, AF_INET6)
HANDLER(forward_ipv6, handle_forward, AF_INET6)
HANDLER(leaving_ipv6, handle_leaving, AF_INET6)
#undef HANDLER

#define OPS(fn, family, num, prio) \
	{ .hook = fn, .pf = family, .hooknum = num, .priority = prio,	\
	  .priv = (void *)&l4lb_hook_mark }

static const struct nf_hook_ops ipv4_ops[] = {
	OPS(local_ipv4, NFPROTO_IPV4, NF_INET_LOCAL_IN, NF_IP_PRI_NAT_SRC - 1),
	OPS(out_ipv4, NFPROTO_IPV4, NF_INET_LOCAL_OUT, NF_IP_PRI_NAT_DST + 1),
	OPS(in_ipv4, NFPROTO_IPV4, NF_INET_LOCAL_OUT, NF_IP_PRI_NAT_DST + 2),
	OPS(icmp_ipv4, NFPROTO_IPV4, NF_INET_FORWARD, NF_IP_PRI_NAT_SRC - 1),
	OPS(out_ipv4, NFPROTO_IPV4, NF_INET_FORWARD, NF_IP_PRI_NAT_SRC),
	OPS(forward_ipv4, NFPROTO_IPV4, NF_INET_FORWARD, NF_IP_PRI_NAT_SRC + 1),
	OPS(leaving_ipv4, NFPROTO_IPV4, NF_INET_POST_ROUTING, NF_IP_PRI_LAST),
};

static const struct nf_hook_ops ipv6_ops[] = {
	OPS(local_ipv6, NFPROTO_IPV6, NF_INET_LOCAL_IN, NF_IP6_PRI_NAT_SRC - 1),
	OPS(out_ipv6, NFPROTO_IPV6, NF_INET_LOCAL_OUT, NF_IP6_PRI_NAT_DST + 1),
	OPS(in_ipv6, NFPROTO_IPV6, NF_INET_LOCAL_OUT, NF_IP6_PRI_NAT_DST + 2),
	OPS(icmp_ipv6, NFPROTO_IPV6, NF_INET_FORWARD, NF_IP6_PRI_NAT_SRC - 1),
	OPS(out_ipv6, NFPROTO_IPV6, NF_INET_FORWARD, NF_IP6_PRI_NAT_SRC),
	OPS(forward_ipv6, NFPROTO_IPV6, NF_INET_FORWARD, NF_IP6_PRI_NAT_SRC + 1),
	OPS(leaving_ipv6, NFPROTO_IPV6, NF_INET_POST_ROUTING, NF_IP6_PRI_LAST),
};

#undef OPS

int l4lb_hook_register(struct l4lb_net *ln, u8 af)
{
	bool v6 = af == AF_INET6;
	int err;

	lockdep_assert_held(&ln->lock);
	if (ln->hooked[v6])
		return 0;
	if (!v6) {
		l4lb_others_learn(ln->net);
		err = nf_register_net_hooks(ln->net, ipv4_ops,
					    ARRAY_SIZE(ipv4_ops));
	} else {
		/* Without this, LOCAL_IN would see IPv6 fragments. */
		err = nf_defrag_ipv6_enable(ln->net);
		if (err)
			return err;
		l4lb_others_learn(ln->net);
		err = nf_register_net_hooks(ln->net, ipv6_ops,
					    ARRAY_SIZE(ipv6_ops));
		if (err)
			nf_defrag_ipv6_disable(ln->net);
	}
	ln->hooked[v6] = !err;
	return err;
}

/* A real server of another family than its service needs the hooks of its own
 * family, for ICMP errors about its tunnel.  If @af has no service, every such
 * server (n_mixed) is of @af.
 */
static bool hook_needed(const struct l4lb_net *ln, u8 af)
{
	return !ln->exiting &&
	       (ln->n_services[af == AF_INET6] || ln->n_mixed ||
		ln->hooks_held);
}

/* Does nothing while the hooks are still needed.  Packets may be in a handler
 * for a grace period afterwards.
 */
void l4lb_hook_unregister(struct l4lb_net *ln, u8 af)
{
	bool v6 = af == AF_INET6;

	lockdep_assert_held(&ln->lock);
	if (!ln->hooked[v6] || hook_needed(ln, af))
		return;
	ln->hooked[v6] = false;
	if (!v6) {
		nf_unregister_net_hooks(ln->net, ipv4_ops,
					ARRAY_SIZE(ipv4_ops));
	} else {
		nf_unregister_net_hooks(ln->net, ipv6_ops,
					ARRAY_SIZE(ipv6_ops));
		nf_defrag_ipv6_disable(ln->net);
	}
}

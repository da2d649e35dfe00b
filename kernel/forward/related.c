// SPDX-License-Identifier: GPL-2.0
/*
 * Data connections with NAT.  Conntrack has found an expectation for the first packet, and
 * its helper has written both ends into the entry:
 *
 *	passive		client -> VIP:port, for the control connection's real server
 *	active		real server -> client:port, which leaves as from the VIP
 *
 * No scheduler, template or limit decides: the control connection has.
 */
#include "forward/related.h"

#include <net/netfilter/nf_conntrack.h>

#include "base/drop.h"
#include "base/flow.h"
#include "conn/conntrack.h"
#include "service/service.h"

static bool is_new(const struct nf_conn *ct, enum ip_conntrack_info info)
{
	return ct && !nf_ct_is_confirmed(ct) && CTINFO2DIR(info) == IP_CT_DIR_ORIGINAL;
}

/* One that began before its service had that: a data connection would have a local end. */
static bool has_full_nat(const struct l4lb_conn *control)
{
	const struct l4lb_service *svc = rcu_dereference(control->server->svc);

	return svc && READ_ONCE(svc->uses) & L4LB_USE_SNAT;
}

/* The control connection because of which @skb is expected, or NULL; *@entry is set to its
 * entry.  An old one, of the connection that had these ports before, goes: that was expected
 * once.
 */
static const struct l4lb_conn *expected(struct sk_buff *skb, const struct l4lb_pkt *pkt,
					struct l4lb_net *ln, const struct nf_conn **entry)
{
	enum ip_conntrack_info info;
	const struct l4lb_conn *control;
	const struct nf_conn *ct = nf_ct_get(skb, &info);

	if (!ct || !ct->master || pkt->flow.proto != IPPROTO_TCP)
		return NULL;
	control = l4lb_helper_master(ln, ct);
	if (control && nf_ct_is_confirmed(ct) && l4lb_pkt_opens(pkt)) {
		l4lb_ct_renew(skb, ln->net, pkt);
		ct = nf_ct_get(skb, &info);
		control = ct ? l4lb_helper_master(ln, ct) : NULL;
	}
	if (!control || !is_new(ct, info) || !l4lb_server_available(control->server) ||
	    has_full_nat(control))
		return NULL;
	*entry = ct;
	return control;
}

static struct l4lb_conn *create(const struct l4lb_flow *flow,
				const struct l4lb_conn_target *target)
{
	enum l4lb_drop reason;
	struct l4lb_conn *conn = l4lb_conn_create(flow, target, NULL, &reason);

	if (conn)
		l4lb_conn_set(conn, L4LB_CONN_TRACKED);
	else
		l4lb_drop(target->server->ln, reason);
	return conn;
}

struct l4lb_conn *l4lb_related_request(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				       struct l4lb_net *ln)
{
	struct l4lb_conn_target target = {
		.first = l4lb_pkt_begins(pkt) ? pkt : NULL,
	};
	const struct nf_conntrack_man *end;
	const struct l4lb_conn *control;
	const struct nf_conn *ct;

	control = expected(skb, pkt, ln, &ct);
	if (!control)
		return NULL;
	end = &ct->tuplehash[IP_CT_DIR_REPLY].tuple.src;
	if (!nf_inet_addr_cmp(&end->u3, &control->server->sched.addr))
		return NULL;
	target.server = control->server;
	target.dport = end->u.tcp.port;
	return create(&pkt->flow, &target);
}

struct l4lb_conn *l4lb_related_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				     struct l4lb_net *ln)
{
	struct l4lb_conn_target target = { .dport = pkt->flow.sport };
	const struct nf_conntrack_tuple *back;
	const struct l4lb_conn *control;
	const struct nf_conn *ct;
	struct l4lb_flow flow;

	control = expected(skb, pkt, ln, &ct);
	if (!control ||
	    !nf_inet_addr_cmp(&pkt->flow.saddr, &control->server->sched.addr))
		return NULL;
	back = &ct->tuplehash[IP_CT_DIR_REPLY].tuple;
	flow = l4lb_flow_inverse(&pkt->flow);
	flow.daddr = l4lb_conn_vip(control);
	flow.dport = back->dst.u.tcp.port;
	if (!nf_inet_addr_cmp(&back->dst.u3, &flow.daddr))
		return NULL;
	target.server = control->server;
	return create(&flow, &target);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Persistence: all connections of a client go to the real server that got its
 * first one.
 *
 * A template in the connection table stores the choice.  Its key is the
 * client's address, masked with the service's netmask, and the destination:
 *
 *	service			template's VIP and port
 *	by firewall mark	mark, 0: covers all VIPs and ports of the mark
 *	by address, port 0	VIP, 0: covers all ports
 *	by address and port	VIP, port
 *	with a range		VIP, first port; the client's port is the last port
 *
 * With persistence engine sip the Call-ID of the message is a part of the key.
 *
 * A template lives as long as any connection created through it, and then for
 * the service's timeout, counted from the creation, end or last packet of these
 * connections, whichever was last.
 */
#include "forward/persist.h"

#include <net/ipv6.h>

#include "conn/lookup.h"
#include "service/account.h"
#include "service/pick.h"
#include "service/range.h"

static void mask_client(const struct l4lb_service *svc,
			union nf_inet_addr *addr)
{
	struct in6_addr whole = addr->in6;

	if (svc->key.af == AF_INET)
		addr->ip &= (__force __be32)READ_ONCE(svc->netmask);
	else
		ipv6_addr_prefix(&addr->in6, &whole, READ_ONCE(svc->netmask));
}

static void template_key(const struct l4lb_service *svc,
			 const struct l4lb_flow *flow, struct l4lb_flow *key)
{
	*key = *flow;
	key->hash = 0;
	mask_client(svc, &key->saddr);
	key->sport = 0;
	if (svc->key.fwmark) {
		key->proto = IPPROTO_IP;
		key->daddr = (union nf_inet_addr){
			.ip = htonl(svc->key.fwmark),
		};
	}
	if (l4lb_key_is_range(&svc->key)) {
		/* Several services with ranges may have this VIP, but only one that
		 * clients reach there has the same two ports.
		 */
		key->sport = svc->key.last_port;
		key->dport = svc->key.port;
	} else if (flow->dport != svc->key.port) {
		key->dport = 0;
	}
}

/* Does a draining server keep its persistent clients? */
static bool drain_keeps(struct l4lb_service *svc)
{
	switch (READ_ONCE(svc->policy.on_drain)) {
	case L4LB_DRAIN_KEEP:
		return true;
	case L4LB_DRAIN_MOVE:
		return !l4lb_service_usable(svc);
	default:
		return !READ_ONCE(svc->ln->sysctl.expire_quiescent_template);
	}
}

/* svc->timeout is in seconds: up to 136 years. */
static unsigned int lifetime(const struct l4lb_service *svc)
{
	return min_t(u64, (u64)READ_ONCE(svc->timeout) * HZ,
		     L4LB_CONN_TIMEOUT_MAX);
}

static bool template_usable(struct l4lb_service *svc,
			    const struct l4lb_conn *template)
{
	const struct l4lb_server *server = template->server;

	if (!l4lb_server_available(server))
		return false;
	return READ_ONCE(server->sched.weight) || drain_keeps(svc);
}

static struct l4lb_conn *template_new(struct l4lb_service *svc,
				      const struct l4lb_flow *flow,
				      const struct l4lb_flow *key,
				      enum l4lb_drop *reason)
{
	struct l4lb_conn_target target = {
		.server = l4lb_service_pick(svc, flow),
		.flow = flow,
	};

	if (!target.server) {
		*reason = L4LB_DROP_NO_DEST;
		return NULL;
	}
	target.dport = key->dport ? target.server->sched.port : 0;
	return l4lb_conn_create_template(key, &target, lifetime(svc), reason);
}

/* Only the service's own ports are mapped to the real server's port. */
static __be16 server_port(const struct l4lb_service *svc,
			  const struct l4lb_server *server, __be16 dport)
{
	if (dport != svc->key.port && !l4lb_key_is_range(&svc->key))
		return dport;
	return server->sched.port ?: dport;
}

struct l4lb_conn *l4lb_persist_find(struct l4lb_service *svc,
				    const struct l4lb_flow *flow)
{
	struct l4lb_flow key;

	template_key(svc, flow, &key);
	return l4lb_conn_find_template(svc->ln, &key);
}

struct l4lb_conn *l4lb_persist_schedule(struct l4lb_service *svc,
					const struct l4lb_flow *flow,
					const struct l4lb_pkt *first,
					enum l4lb_drop *reason)
{
	struct l4lb_conn_target target = { .first = first };
	struct l4lb_conn *template;
	struct l4lb_flow key;

	template_key(svc, flow, &key);
	template = l4lb_conn_find_template(svc->ln, &key);
	if (template && !template_usable(svc, template)) {
		l4lb_conn_kill(template, L4LB_END_MOVED);
		template = NULL;
	}
	if (!template)
		template = template_new(svc, flow, &key, reason);
	if (!template)
		return NULL;

	target.server = template->server;
	target.dport = server_port(svc, target.server, flow->dport);
	WRITE_ONCE(template->last, (u32)jiffies);
	return l4lb_conn_create(flow, &target, template, reason);
}

/* ---- calls ---- */

static struct l4lb_conn *call_find(struct l4lb_service *svc,
				   const struct l4lb_flow *flow,
				   struct l4lb_call_key *key)
{
	struct l4lb_conn *template;

	template_key(svc, flow, &key->flow);
	template = l4lb_conn_find_call(svc->ln, key);
	if (!template || template_usable(svc, template))
		return template;
	l4lb_conn_kill(template, L4LB_END_MOVED);
	return NULL;
}

/* @server: NULL: the scheduler's choice. */
static struct l4lb_conn *call_new(struct l4lb_service *svc,
				  const struct l4lb_flow *flow,
				  const struct l4lb_call_key *key,
				  struct l4lb_server *server,
				  enum l4lb_drop *reason)
{
	struct l4lb_conn_target target = {
		.server = server ?: l4lb_service_pick(svc, flow),
		.flow = flow,
	};

	if (!target.server) {
		*reason = L4LB_DROP_NO_DEST;
		return NULL;
	}
	target.dport = key->flow.dport ? target.server->sched.port : 0;
	return l4lb_conn_create_call(key, &target, lifetime(svc), reason);
}

struct l4lb_conn *l4lb_persist_call(struct l4lb_service *svc,
				    const struct l4lb_pkt *pkt,
				    struct l4lb_call_key *key,
				    struct l4lb_conn *once,
				    enum l4lb_drop *reason)
{
	struct l4lb_conn_target target = { .first = pkt };
	struct l4lb_conn *template;

	template = call_find(svc, &pkt->flow, key) ?:
		   call_new(svc, &pkt->flow, key, NULL, reason);
	if (!template)
		return NULL;
	target.server = template->server;
	target.dport = server_port(svc, target.server, pkt->flow.dport);
	WRITE_ONCE(template->last, (u32)jiffies);
	if (!(READ_ONCE(svc->flags) & IP_VS_SVC_F_ONEPACKET))
		return l4lb_conn_create(&pkt->flow, &target, template, reason);
	l4lb_conn_init_once(once, &pkt->flow, target.server, target.dport);
	l4lb_conn_set(once, L4LB_CONN_ONE_PACKET);
	l4lb_account_conn(target.server);
	return once;
}

struct l4lb_conn *l4lb_persist_begin(struct l4lb_service *svc,
				     const struct l4lb_flow *reply,
				     struct l4lb_call_key *key,
				     struct l4lb_server *server)
{
	struct l4lb_flow flow = l4lb_flow_inverse(reply);
	const struct l4lb_conn_target target = {
		.server = server, .dport = reply->sport,
	};
	struct l4lb_conn *template;
	enum l4lb_drop reason;

	flow.daddr = svc->key.addr;
	flow.dport = svc->key.port;
	flow.hash = 0;
	template = call_find(svc, &flow, key);
	/* The real server that has the call now is the one that speaks. */
	if (template && template->server != server) {
		l4lb_conn_kill(template, L4LB_END_MOVED);
		template = NULL;
	}
	if (!template)
		template = call_new(svc, &flow, key, server, &reason);
	if (!template)
		return NULL;
	WRITE_ONCE(template->last, (u32)jiffies);
	l4lb_conn_set(template, L4LB_CONN_ASSURED);
	return READ_ONCE(svc->flags) & IP_VS_SVC_F_ONEPACKET ? NULL :
	       l4lb_conn_create(&flow, &target, template, &reason);
}

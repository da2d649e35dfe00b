// SPDX-License-Identifier: GPL-2.0
/*
 * Choosing a real server for a new flow, and creating its connection:
 *
 *	persistent service	the client's real server, see persist.c
 *	one-packet service	a new choice for each packet, no connection
 *	any other		the scheduler's choice
 *	no server available	service by firewall mark, cache_bypass on: the
 *				packet goes on to its own destination
 */
#include "forward/schedule.h"

#include <net/ipv6.h>
#include <net/addrconf.h>
#include <net/route.h>

#include "forward/call.h"
#include "forward/persist.h"
#include "forward/reset.h"
#include "service/account.h"
#include "service/limit.h"
#include "service/shadow.h"

/* Is the packet addressed to some other host? */
static bool is_elsewhere(struct net *net, const struct l4lb_flow *flow)
{
	const struct in6_addr *addr = &flow->daddr.in6;

	if (flow->af == AF_INET)
		return inet_addr_type(net, flow->daddr.ip) == RTN_UNICAST;
	return ipv6_addr_type(addr) & IPV6_ADDR_UNICAST &&
	       !ipv6_chk_addr(net, addr, NULL, 0);
}

static noinline struct l4lb_conn *schedule_bypass(struct l4lb_service *svc,
						  const struct l4lb_flow *flow,
						  const struct l4lb_pkt *first,
						  enum l4lb_drop *reason)
{
	struct l4lb_net *ln = svc->ln;
	struct l4lb_conn_target target = {
		.server = ln->bypass[flow->af == AF_INET6],
		.first = first,
	};

	if (!svc->key.fwmark || *reason != L4LB_DROP_NO_DEST ||
	    !READ_ONCE(ln->sysctl.cache_bypass) || !is_elsewhere(ln->net, flow))
		return NULL;
	return l4lb_conn_create(flow, &target, NULL, reason);
}

static noinline struct l4lb_conn *
schedule_once(struct l4lb_service *svc, const struct l4lb_flow *flow,
	      struct l4lb_conn *once)
{
	struct l4lb_server *server = l4lb_service_pick(svc, flow);

	if (!server)
		return NULL;
	l4lb_conn_init_once(once, flow, server, server->sched.port ?: flow->dport);
	l4lb_conn_set(once, L4LB_CONN_ONE_PACKET);
	if (unlikely(READ_ONCE(svc->uses) & L4LB_USE_SHADOWED))
		l4lb_shadow_pass(server, flow);
	l4lb_account_conn(server);
	return once;
}

/* Inline: services without a limit pay no call for those that have one. */
static __always_inline struct l4lb_conn *
schedule_by_service(struct l4lb_service *svc, const struct l4lb_flow *flow,
		    const struct l4lb_pkt *first, struct l4lb_conn *once,
		    enum l4lb_drop *reason)
{
	u32 flags = READ_ONCE(svc->flags);

	*reason = L4LB_DROP_NO_DEST;
	if (unlikely(flags & IP_VS_SVC_F_PERSISTENT))
		return l4lb_persist_schedule(svc, flow, first, reason);
	/* Without persistence, a client's ports would get different servers. */
	if (unlikely(!svc->key.port && !svc->key.fwmark))
		return NULL;
	if (unlikely(once && flags & IP_VS_SVC_F_ONEPACKET && flow->proto == IPPROTO_UDP))
		return schedule_once(svc, flow, once);
	return l4lb_schedule_flow(svc, flow, first, reason);
}

/* One-packet services have no connections: only their rate can be limited. */
static noinline struct l4lb_conn *
schedule_limited(struct l4lb_service *svc, const struct l4lb_flow *flow,
		 const struct l4lb_pkt *first, struct l4lb_conn *once,
		 enum l4lb_drop *reason)
{
	/* pairs with the release in l4lb_limit_reserve() */
	struct l4lb_limit *limit = smp_load_acquire(&svc->limit);
	struct l4lb_conn *conn;
	bool counted, entered;

	counted = !(READ_ONCE(svc->flags) & IP_VS_SVC_F_ONEPACKET &&
		    flow->proto == IPPROTO_UDP);
	if (!l4lb_limit_admits(limit, svc, counted, &entered)) {
		*reason = L4LB_DROP_LIMIT;
		return NULL;
	}
	conn = schedule_by_service(svc, flow, first, once, reason);
	if (entered)
		l4lb_limit_leave(limit);
	return conn;
}

/**
 * l4lb_schedule_again() - choose another real server for a flow that goes on
 * @svc: as for l4lb_schedule(), like all that follow
 * @flow: the flow
 * @first: its packet, or NULL
 * @once: memory, or NULL
 * @reason: set if there is no connection
 *
 * Its service's limits let it pass: it has had its place.
 *
 * Context: RCU, BH off.  Return: the flow's connection, or NULL.
 */
struct l4lb_conn *l4lb_schedule_again(struct l4lb_service *svc,
				      const struct l4lb_flow *flow,
				      const struct l4lb_pkt *first,
				      struct l4lb_conn *once,
				      enum l4lb_drop *reason)
{
	return schedule_by_service(svc, flow, first, once, reason) ?:
	       schedule_bypass(svc, flow, first, reason);
}

/**
 * l4lb_schedule() - choose a real server for a new flow
 * @svc: the service it is for
 * @flow: the flow, client to VIP
 * @first: its packet, if that is to decide the state here, see struct
 *	l4lb_conn_target; or NULL
 * @once: memory for the connection of a one-packet service; NULL: put it into
 *	the table, even if the service has just become a one-packet service
 * @reason: set if there is no connection
 *
 * Context: RCU, BH off.  Return: the flow's connection, or NULL.
 */
struct l4lb_conn *l4lb_schedule(struct l4lb_service *svc,
				const struct l4lb_flow *flow,
				const struct l4lb_pkt *first,
				struct l4lb_conn *once, enum l4lb_drop *reason)
{
	struct l4lb_conn *conn;

	if (unlikely(READ_ONCE(svc->limit)))
		conn = schedule_limited(svc, flow, first, once, reason);
	else
		conn = schedule_by_service(svc, flow, first, once, reason);
	return likely(conn) ? conn : schedule_bypass(svc, flow, first, reason);
}

/**
 * l4lb_schedule_call() - the same for a service with l4lb_service_calls()
 * @svc: the service
 * @arrival: the packet
 * @once: memory, as for l4lb_schedule(), but never NULL
 * @reason: set if there is no connection
 *
 * What has no Call-ID uses up nothing of the service's limits.
 *
 * Context: RCU, BH off.  Return: the flow's connection, or NULL.
 */
struct l4lb_conn *l4lb_schedule_call(struct l4lb_service *svc,
				     const struct l4lb_arrival *arrival,
				     struct l4lb_conn *once,
				     enum l4lb_drop *reason)
{
	const struct l4lb_flow *flow = &arrival->pkt->flow;
	struct l4lb_limit *limit = NULL;
	struct l4lb_call_key key;
	struct l4lb_conn *conn;
	bool entered = false;

	if (!l4lb_call_read(arrival->skb, arrival->pkt, &key)) {
		*reason = L4LB_DROP_NO_CALL_ID;
		return NULL;
	}
	if (!arrival->again)
		/* pairs with the release in l4lb_limit_reserve() */
		limit = smp_load_acquire(&svc->limit);
	if (limit && !l4lb_limit_admits(limit, svc, !(READ_ONCE(svc->flags) &
						      IP_VS_SVC_F_ONEPACKET),
					&entered)) {
		*reason = L4LB_DROP_LIMIT;
		return NULL;
	}
	conn = l4lb_persist_call(svc, arrival->pkt, &key, once, reason);
	if (entered)
		l4lb_limit_leave(limit);
	return conn ?: schedule_bypass(svc, flow, arrival->pkt, reason);
}

void l4lb_schedule_refuse(struct l4lb_service *svc, struct sk_buff *skb,
			  const struct l4lb_pkt *pkt)
{
	l4lb_limit_count(svc->limit);
	if (READ_ONCE(svc->policy.limit_reply) == L4LB_LIMIT_RESET &&
	    l4lb_pkt_begins(pkt) && !(pkt->tcp & L4LB_TCP_FLAG_ACK))
		l4lb_reset_refuse(skb, pkt, svc->ln);
}

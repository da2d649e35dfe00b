// SPDX-License-Identifier: GPL-2.0
/*
 * No state before proof.  A forged SYN costs memory for a minute, since it may be the first
 * packet of a connection.  A scheduler that hashes needs no memory to send the next packet
 * of a flow to the same real server.  So here a connection gets its entry later:
 *
 *	NAT	with the first packet of the real server that follows a handshake: an
 *		ACK without SYN and RST; COOKIE ACK, or a chunk of an association
 *	others	with the first such packet of the client, since the server's packets do
 *		not pass here
 *
 * A bare ACK proves little: a server in mid-handshake also answers any segment that it does
 * not expect by one.  So an entry of TCP begins as after a SYN, and the next packets
 * establish it, unless the server has sent a payload or a FIN.
 *
 * Before that, and while the table is full, packets are forwarded as the scheduler says.
 * A reply is recognised by the address and port of its real server, if the scheduler would
 * send its client there.
 */
#include "forward/lazy.h"

#include <net/icmp.h>

#include "base/parse.h"
#include "conn/lookup.h"
#include "conn/state.h"
#include "forward/checksum.h"
#include "forward/forward.h"
#include "forward/nat.h"
#include "forward/schedule.h"
#include "service/account.h"
#include "service/find.h"
#include "service/server_table.h"

static bool may_be_lazy(const struct l4lb_service *svc)
{
	const struct l4lb_net *ln = svc->ln;

	/* An overloaded server's clients go to another one, until it is no longer. */
	return svc->key.port &&
	       !(READ_ONCE(svc->flags) & IP_VS_SVC_F_PERSISTENT) &&
	       !READ_ONCE(svc->n_capped) && !READ_ONCE(ln->sysctl.conntrack) &&
	       !(READ_ONCE(svc->uses) & L4LB_USE_HELPER);
}

/* Connections from this host are not lazy: replies to this host are left as they are,
 * because health checks have to see the real server's address.
 */
static bool is_from_here(const struct sk_buff *skb, u8 hook)
{
	return hook == NF_INET_LOCAL_OUT ||
	       (hook == NF_INET_LOCAL_IN && skb->dev->flags & IFF_LOOPBACK);
}

static bool is_for_here(const struct sk_buff *skb, u8 hook)
{
	return hook == NF_INET_LOCAL_IN ||
	       (hook == NF_INET_LOCAL_OUT &&
		skb_dst(skb)->dev->flags & IFF_LOOPBACK);
}

struct l4lb_server *l4lb_lazy_server(struct l4lb_service *svc,
				     const struct sk_buff *skb,
				     const struct l4lb_flow *flow, u8 hook)
{
	struct l4lb_server *server;

	if (is_from_here(skb, hook) || !l4lb_flow_may_start(flow) ||
	    !may_be_lazy(svc))
		return NULL;
	server = l4lb_service_maps(svc, flow);
	if (!server)
		return NULL;
	switch (READ_ONCE(server->method)) {
	case IP_VS_CONN_F_MASQ:
		return l4lb_server_is_told_apart(server) ? server : NULL;
	case IP_VS_CONN_F_TUNNEL:
	case IP_VS_CONN_F_DROUTE:
		return server;
	default:
		return NULL;
	}
}

static struct l4lb_conn *fill(struct l4lb_conn *once,
			      const struct l4lb_flow *request,
			      struct l4lb_server *server)
{
	l4lb_conn_init_once(once, request, server,
			    server->sched.port ?: request->dport);
	l4lb_conn_set(once, L4LB_CONN_ONE_PACKET);
	return once;
}

/* The entry of @request, of TCP as after a SYN; NULL: there is no room for it.  Every packet
 * of a connection without an entry would look for room again: for the rest of a jiffy none
 * of the service does.
 */
static struct l4lb_conn *create(const struct l4lb_flow *request,
				struct l4lb_server *server)
{
	struct l4lb_service *svc = rcu_dereference(server->svc);
	const struct l4lb_pkt syn = {
		.flow	= *request,
		.tcp	= L4LB_TCP_FLAG_SYN,
	};
	const struct l4lb_conn_target target = {
		.server	= server,
		.dport	= server->sched.port ?: request->dport,
		.first	= request->proto == IPPROTO_TCP ? &syn : NULL,
	};
	enum l4lb_drop reason;
	struct l4lb_conn *conn;

	if (!svc || READ_ONCE(svc->refused) == (u32)jiffies)
		return NULL;
	conn = l4lb_conn_create(request, &target, NULL, &reason);
	if (!conn && reason != L4LB_DROP_SAME_REPLIES)
		WRITE_ONCE(svc->refused, (u32)jiffies);
	return conn;
}

/* Does @pkt belong to a connection whose handshake is over for its sender?  A HEARTBEAT
 * does not: it also goes to addresses that a client has only named.
 */
static bool follows_handshake(const struct l4lb_pkt *pkt)
{
	if (pkt->flow.proto == IPPROTO_TCP)
		return (pkt->tcp & (L4LB_TCP_FLAG_ACK | L4LB_TCP_FLAG_SYN |
				    L4LB_TCP_FLAG_RST)) == L4LB_TCP_FLAG_ACK;
	switch (pkt->chunk) {
	case SCTP_CID_COOKIE_ECHO:
	case SCTP_CID_COOKIE_ACK:
	case SCTP_CID_DATA:
	case SCTP_CID_I_DATA:
	case SCTP_CID_SACK:
	case SCTP_CID_SHUTDOWN:
	case SCTP_CID_SHUTDOWN_ACK:
		return true;
	default:
		return false;
	}
}

/**
 * l4lb_lazy_request() - a client's packet that has no connection
 * @server: from l4lb_lazy_server()
 * @pkt: the packet, parsed
 * @once: memory for a connection that is not in the table
 *
 * Context: RCU, BH off.  Return: the flow's connection, or @once.
 */
struct l4lb_conn *l4lb_lazy_request(struct l4lb_server *server,
				    const struct l4lb_pkt *pkt,
				    struct l4lb_conn *once)
{
	struct l4lb_conn *conn;

	/* After a FIN there is nothing to keep. */
	if (READ_ONCE(server->method) == IP_VS_CONN_F_MASQ || !follows_handshake(pkt) ||
	    pkt->tcp & L4LB_TCP_FLAG_FIN)
		return fill(once, &pkt->flow, server);
	conn = create(&pkt->flow, server);
	if (!conn)
		return fill(once, &pkt->flow, server);
	if (pkt->flow.proto == IPPROTO_SCTP)
		l4lb_state_packet(conn, pkt, false);
	return conn;
}

/* The real server of the reply @flow, which has no connection, if the scheduler would send
 * its client there.  @request is set to the client's flow.
 */
static struct l4lb_server *sender(struct l4lb_net *ln,
				  const struct l4lb_flow *flow,
				  struct l4lb_flow *request)
{
	struct l4lb_server *server = l4lb_server_stateless(ln, flow);
	struct l4lb_service *svc;

	svc = server ? rcu_dereference(server->svc) : NULL;
	if (!svc || !may_be_lazy(svc) || !l4lb_server_is_told_apart(server))
		return NULL;
	*request = l4lb_flow_inverse(flow);
	request->daddr = svc->key.addr;
	request->dport = svc->key.port;
	if (l4lb_service_maps(svc, request) != server)
		return NULL;
	/* If there is an entry, it is with another real server, from before a change. */
	return l4lb_conn_find_in(ln, request) ? NULL : server;
}

/* The entry of @conn was made by @pkt of its real server. */
static void prove(struct l4lb_conn *conn, const struct sk_buff *skb,
		  const struct l4lb_pkt *pkt)
{
	if (pkt->flow.proto == IPPROTO_TCP && !(pkt->tcp & L4LB_TCP_FLAG_FIN) &&
	    !l4lb_segment_has_payload(skb, pkt))
		return;
	l4lb_conn_set(conn, L4LB_CONN_ACKED);
	l4lb_state_packet(conn, pkt, true);
	l4lb_conn_set(conn, L4LB_CONN_ANSWERED);
}

/**
 * l4lb_lazy_reply() - a NATed real server's packet that has no connection
 * @ln: namespace
 * @skb: the packet
 * @pkt: the packet, parsed; not UDP
 * @once: memory for a connection that is not in the table
 *
 * Context: RCU, BH off.
 * Return: the flow's connection; @once; or NULL: it is no such packet.
 */
struct l4lb_conn *l4lb_lazy_reply(struct l4lb_net *ln, struct sk_buff *skb,
				  const struct l4lb_pkt *pkt, struct l4lb_conn *once)
{
	struct l4lb_conn *conn = NULL;
	struct l4lb_server *server;
	struct l4lb_flow request;

	server = is_for_here(skb, pkt->hook) ? NULL :
		 sender(ln, &pkt->flow, &request);
	if (!server)
		return NULL;
	if (follows_handshake(pkt) && l4lb_checksum_ok(skb, pkt, ln))
		conn = create(&request, server);
	if (!conn)
		return fill(once, &request, server);
	/* Another processor may have made it for another real server. */
	if (conn->server != server)
		return NULL;
	prove(conn, skb, pkt);
	return conn;
}

int l4lb_lazy_error_in(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct l4lb_net *ln, const struct l4lb_flow *flow,
		       unsigned int quoted)
{
	struct l4lb_server *server;
	struct l4lb_service *svc;
	struct l4lb_conn once;

	/* A packet of the flow would not be taken there, either. */
	if (pkt->hook == NF_INET_FORWARD && !READ_ONCE(ln->sysctl.nonlocal_vip))
		return -ENOENT;
	svc = l4lb_service_lookup(ln, skb->mark, flow);
	if (!svc || !l4lb_lazy_wanted(svc))
		return -ENOENT;
	server = l4lb_lazy_server(svc, skb, flow, pkt->hook);
	if (!server)
		return -ENOENT;
	if (!l4lb_icmp_checksum_ok(skb, pkt, ln))
		return NF_DROP;
	l4lb_account_in(server, skb->len);
	return l4lb_forward(skb, pkt, fill(&once, flow, server), quoted);
}

int l4lb_lazy_error_out(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			struct l4lb_net *ln, const struct l4lb_flow *flow,
			unsigned int quoted)
{
	struct l4lb_server *server;
	struct l4lb_flow request;
	struct l4lb_conn once;

	server = is_for_here(skb, pkt->hook) ? NULL : sender(ln, flow, &request);
	if (!server)
		return -ENOENT;
	if (!l4lb_icmp_checksum_ok(skb, pkt, ln))
		return NF_DROP;
	l4lb_account_out(server, skb->len);
	return l4lb_nat_reply(skb, pkt, fill(&once, &request, server), quoted);
}

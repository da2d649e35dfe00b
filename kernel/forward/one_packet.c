// SPDX-License-Identifier: GPL-2.0
/*
 * One-packet scheduling: each datagram goes to a real server of its own, and no
 * connection remembers it.  With NAT the reply is known by where it comes from:
 * a real server's address and port stand for the service they are in.
 *
 *	A real server in several such services answers as the one it was added
 *	to last.
 *	Whatever it sends from that port gets the VIP as its source, also to
 *	hosts that are no clients.  The exception is this host: health checks
 *	from here must see the real server's address.
 */
#include "forward/one_packet.h"

#include "forward/nat.h"
#include "service/server_table.h"

/* The connection that a reply @flow would belong to.  It is never in the table
 * and refers to nothing beyond the caller's RCU section.
 */
static void fill_conn(struct l4lb_conn *conn, const struct l4lb_flow *flow,
		      struct l4lb_server *server,
		      const struct l4lb_svc_key *svc)
{
	struct l4lb_flow request = l4lb_flow_inverse(flow);

	request.daddr = svc->addr;
	request.dport = svc->port;
	l4lb_conn_init_once(conn, &request, server, flow->sport);
	l4lb_conn_set(conn, L4LB_CONN_ONE_PACKET);
}

/**
 * l4lb_one_packet_reply() - give a reply without a connection its VIP back
 * @skb: the packet, or an ICMP error
 * @pkt: the packet, parsed
 * @ln: namespace
 * @flow: of the reply; of an error, as if what it quotes had been answered
 * @quoted: offset of the packet that an error quotes, or 0
 *
 * Only for namespaces with such services: the caller checks, at less than a
 * call's cost.
 *
 * Context: RCU, BH off.
 * Return: the verdict, or -ENOENT if it comes from no real server of a one-packet
 * service.
 */
int l4lb_one_packet_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			  struct l4lb_net *ln, const struct l4lb_flow *flow,
			  unsigned int quoted)
{
	const struct l4lb_service *svc;
	struct l4lb_server *server;
	struct l4lb_conn conn;

	if (flow->proto != IPPROTO_UDP || pkt->hook == NF_INET_LOCAL_IN)
		return -ENOENT;
	server = l4lb_server_by_source(ln, flow, true);
	if (!server)
		return -ENOENT;
	svc = rcu_dereference(server->svc);
	if (!svc)
		return -ENOENT;
	fill_conn(&conn, flow, server, &svc->key);
	l4lb_account_out(server, skb->len);
	return l4lb_nat_reply(skb, pkt, &conn, quoted);
}

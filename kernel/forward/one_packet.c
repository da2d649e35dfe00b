// SPDX-License-Identifier: GPL-2.0
/*
 * One-packet scheduling: each datagram is scheduled by itself and leaves no
 * connection.  With NAT a reply is recognised by its source: the address and
 * port of a real server identify its service.
 *
 *	If a real server is in several such services, its replies belong to the
 *	service it was added to last, or that became such a service after that.
 *	Every packet from that port gets the VIP as its source, also to hosts
 *	that are not clients.  The exception is this host: health checks from
 *	here must see the real server's address.
 */
#include "forward/one_packet.h"

#include "forward/nat.h"
#include "service/account.h"
#include "service/server_table.h"

/* A temporary connection for the reply @flow.  It is never in the table, and it
 * is valid only in the caller's RCU section.
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
 * l4lb_one_packet_reply() - translate a reply that has no connection
 * @skb: the packet, or an ICMP error
 * @pkt: the packet, parsed
 * @ln: namespace
 * @flow: flow of the reply; with an ICMP error: of a reply to the quoted packet
 * @quoted: offset of the packet that the ICMP error quotes, 0 if it is no error
 *
 * The caller checks ln->n_one_packet first, which is cheaper than this call.
 *
 * Context: RCU, BH off.
 * Return: the verdict, or -ENOENT if the packet does not come from a real
 * server of a one-packet service.
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
	server = l4lb_server_stateless(ln, flow);
	if (!server)
		return -ENOENT;
	svc = rcu_dereference(server->svc);
	if (!svc || !(READ_ONCE(svc->flags) & IP_VS_SVC_F_ONEPACKET))
		return -ENOENT;
	fill_conn(&conn, flow, server, &svc->key);
	l4lb_account_out(server, skb->len);
	return l4lb_nat_reply(skb, pkt, &conn, quoted);
}

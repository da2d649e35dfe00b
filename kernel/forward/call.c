// SPDX-License-Identifier: GPL-2.0
/*
 * Persistence engine sip: SIP over UDP.  A call stays with one real server, whatever
 * port its messages come from; other calls of the same client may be elsewhere.
 *
 *	new flow		template by client, VIP and Call-ID, see persist.c
 *	no Call-ID		dropped
 *	known flow		its real server, whatever Call-ID a packet has
 *	from a real server	NAT: it begins a call, and the client's answer gets
 *				to that real server
 */
#include "forward/call.h"

#include "forward/persist.h"
#include "service/server_table.h"

bool l4lb_call_read(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		    struct l4lb_call_key *key)
{
	unsigned int from = pkt->l4 + sizeof(struct udphdr), len, at;

	if (pkt->flow.proto != IPPROTO_UDP || skb->len <= from)
		return false;
	len = min_t(unsigned int, skb->len - from, L4LB_CALL_ID_WITHIN);
	if (!pskb_may_pull(skb, from + len))
		return false;
	key->len = l4lb_call_id_find(skb->data + from, len, &at);
	key->id = skb->data + from + at;
	return key->len;
}

/**
 * l4lb_call_begin() - the connection of a call that a real server begins
 * @skb: a datagram that has no connection
 * @pkt: the same, parsed
 * @ln: namespace
 *
 * A real server asks as a client of this host for its health, too: that stays
 * as it is.
 *
 * Context: RCU, BH off.  Return: the connection, or NULL.
 */
struct l4lb_conn *l4lb_call_begin(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				  struct l4lb_net *ln)
{
	struct l4lb_call_key key;
	struct l4lb_service *svc;
	struct l4lb_server *server;

	if (pkt->hook == NF_INET_LOCAL_IN)
		return NULL;
	server = l4lb_server_stateless(ln, &pkt->flow);
	svc = server ? rcu_dereference(server->svc) : NULL;
	if (!svc || !l4lb_service_calls(svc) || !l4lb_call_read(skb, pkt, &key))
		return NULL;
	return l4lb_persist_begin(svc, &pkt->flow, &key, server);
}

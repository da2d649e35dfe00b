// SPDX-License-Identifier: GPL-2.0
/*
 * net.ipv4.vs.conntrack: NATed connections and the firewall's own memory of
 * them.  An entry has a tuple for each direction:
 *
 *	original	client -> VIP		made when the packet came in
 *	reply		VIP -> client		changed to real server -> client
 *
 * before it is confirmed, which POST_ROUTING does.  So stateful rules see one
 * connection, and what they translate besides (the client's address, for
 * servers that would answer it directly) is translated back before the reply
 * comes here.
 *
 * Our connection decides.  When it ends the entry goes with it; when one begins
 * on an entry that is still there, a client has used its port anew: the entry
 * goes and the same packet gets another.  With this setting off, and with
 * tunnels and direct routing, whose replies nobody sees, packets are not tracked.
 */
#include "conn/conntrack.h"

#include <net/netfilter/nf_conntrack.h>
#include <net/netfilter/nf_conntrack_core.h>
#include <net/netfilter/nf_conntrack_zones.h>

/* The entry of a packet that is the first of its direction to come along. */
static struct nf_conn *fresh(const struct sk_buff *skb)
{
	enum ip_conntrack_info info;
	struct nf_conn *ct = nf_ct_get(skb, &info);

	if (!ct || nf_ct_is_confirmed(ct) ||
	    CTINFO2DIR(info) != IP_CT_DIR_ORIGINAL)
		return NULL;
	return ct;
}

/**
 * l4lb_ct_alter() - what comes back will come from elsewhere
 * @skb: a packet of @conn that is translated
 * @conn: the connection
 * @reply: from the real server; usually such a packet has its entry already
 */
void l4lb_ct_alter(const struct sk_buff *skb, const struct l4lb_conn *conn,
		   bool reply)
{
	struct nf_conn *ct = fresh(skb);
	struct nf_conntrack_tuple *back;
	bool ports;

	if (!ct)
		return;
	/* IPsec, which follows a connection of another protocol, has none. */
	ports = nf_ct_protonum(ct) == conn->proto;
	back = &ct->tuplehash[IP_CT_DIR_REPLY].tuple;
	if (reply) {
		back->dst.u3 = l4lb_conn_vip(conn);
		if (ports)
			back->dst.u.all = conn->vport;
	} else {
		back->src.u3 = l4lb_conn_server(conn);
		if (ports)
			back->src.u.all = conn->dport;
	}
}

/**
 * l4lb_ct_renew() - a connection begins: so must its entry
 * @skb: its first packet, as the client sent it
 * @conn: the connection, new
 * @pkt: the packet, parsed
 */
void l4lb_ct_renew(struct sk_buff *skb, const struct l4lb_conn *conn,
		   const struct l4lb_pkt *pkt)
{
	struct nf_hook_state state = {
		.hook	= pkt->hook,
		.pf	= pkt->flow.af,
		.net	= l4lb_conn_net(conn)->net,
	};
	enum ip_conntrack_info info;
	struct nf_conn *ct = nf_ct_get(skb, &info);

	if (!ct || !nf_ct_is_confirmed(ct) ||
	    CTINFO2DIR(info) != IP_CT_DIR_ORIGINAL)
		return;
	nf_ct_kill(ct);
	nf_reset_ct(skb);
	if (nf_conntrack_in(skb, &state) != NF_ACCEPT)
		l4lb_skb_untrack(skb);
}

static void tuple_fill(struct nf_conntrack_tuple *tuple,
		       const struct l4lb_conn *conn)
{
	*tuple = (struct nf_conntrack_tuple){ };
	tuple->src.u3 = l4lb_conn_client(conn);
	tuple->src.u.all = conn->cport;
	tuple->src.l3num = conn->af;
	tuple->dst.u3 = l4lb_conn_vip(conn);
	tuple->dst.u.all = conn->vport;
	tuple->dst.protonum = conn->proto;
	tuple->dst.dir = IP_CT_DIR_ORIGINAL;
}

/* Is @ct the entry that was changed for @conn? */
static bool is_ours(const struct nf_conn *ct, const struct l4lb_conn *conn)
{
	const struct nf_conntrack_man *from =
		&ct->tuplehash[IP_CT_DIR_REPLY].tuple.src;

	return nf_inet_addr_cmp(&from->u3, &conn->server->sched.addr) &&
	       from->u.all == conn->dport;
}

/* @conn is over.  Any context with RCU. */
void l4lb_ct_drop(const struct l4lb_conn *conn)
{
	struct nf_conntrack_tuple_hash *found;
	struct nf_conntrack_tuple tuple;
	struct nf_conn *ct;

	tuple_fill(&tuple, conn);
	found = nf_conntrack_find_get(l4lb_conn_net(conn)->net,
				      &nf_ct_zone_dflt, &tuple);
	if (!found)
		return;
	ct = nf_ct_tuplehash_to_ctrack(found);
	if (is_ours(ct, conn))
		nf_ct_kill(ct);
	nf_ct_put(ct);
}

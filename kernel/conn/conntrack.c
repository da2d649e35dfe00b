// SPDX-License-Identifier: GPL-2.0
/*
 * net.ipv4.vs.conntrack: NATed connections and their conntrack entries.  An
 * entry has a tuple for each direction:
 *
 *	original	client -> VIP		made when the packet came in
 *	reply		VIP -> client		changed to real server -> client
 *						(full NAT: -> local end)
 *
 * The change is made before POST_ROUTING confirms the entry.  So stateful rules
 * see one connection.  If they also translate the client's address (for servers
 * that would answer it directly), conntrack undoes that before the reply comes
 * here.
 *
 * An entry ends with its l4lb connection.  If a new connection finds an entry,
 * the client has reused its port: the old entry is killed and the packet gets a
 * new one.  With this setting off, and with tunnels and direct routing, whose
 * replies are not seen here, packets are not tracked; control connections with a
 * helper, and their data connections, always are.
 */
#include "conn/conntrack.h"

#include <net/netfilter/nf_conntrack.h>
#include <net/netfilter/nf_conntrack_core.h>
#include <net/netfilter/nf_conntrack_zones.h>

#include "conn/helper.h"

/* The packet's entry if it is new: unconfirmed, in its original direction. */
static struct nf_conn *fresh(const struct sk_buff *skb)
{
	enum ip_conntrack_info info;
	struct nf_conn *ct = nf_ct_get(skb, &info);

	if (!ct || nf_ct_is_confirmed(ct) ||
	    CTINFO2DIR(info) != IP_CT_DIR_ORIGINAL)
		return NULL;
	return ct;
}

/* With full NAT a reply comes to the local end, and its answer from the client. */
static void alter_other_end(struct nf_conntrack_tuple *back,
			    const struct l4lb_conn *conn, bool reply, bool ports)
{
	if (reply) {
		back->src.u3 = l4lb_conn_client(conn);
		if (ports)
			back->src.u.all = conn->cport;
	} else {
		back->dst.u3 = conn->local.addr;
		if (ports)
			back->dst.u.all = conn->local.port;
	}
}

/**
 * l4lb_ct_alter() - change the reply tuple of a new entry to match NAT
 * @skb: a packet of @conn that is translated
 * @conn: the connection
 * @reply: @skb is a reply; usually its entry is an old one, which stays
 *
 * After a takeover the real server may speak first.  An entry of its direction would have
 * no helper, so a control connection's begins with the client's next packet.
 */
void l4lb_ct_alter(struct sk_buff *skb, const struct l4lb_conn *conn, bool reply)
{
	struct nf_conn *ct = fresh(skb);
	struct nf_conntrack_tuple *back;
	bool ports, helped;

	if (l4lb_helper_used())
		l4lb_helper_seen(skb, l4lb_conn_net(conn));
	if (!ct)
		return;
	/* IPsec packets follow a connection of another protocol: no ports. */
	ports = nf_ct_protonum(ct) == conn->proto;
	helped = l4lb_helper_used() && ports && l4lb_helper_controls(conn);
	if (helped && reply) {
		l4lb_skb_untrack(skb);
		return;
	}
	back = &ct->tuplehash[IP_CT_DIR_REPLY].tuple;
	if (reply) {
		back->dst.u3 = l4lb_conn_vip(conn);
		if (ports)
			back->dst.u.all = conn->vport;
	} else {
		back->src.u3 = l4lb_conn_server(conn);
		if (ports)
			back->src.u.all = conn->dport;
		if (helped)
			l4lb_helper_attach(ct, conn);
	}
	if (conn->method == L4LB_FULL_NAT)
		alter_other_end(back, conn, reply, ports);
}

/**
 * l4lb_ct_renew() - replace an old entry when a connection begins
 * @skb: its first packet, as the client sent it
 * @net: namespace
 * @pkt: the packet, parsed
 */
void l4lb_ct_renew(struct sk_buff *skb, struct net *net,
		   const struct l4lb_pkt *pkt)
{
	struct nf_hook_state state = {
		.hook	= pkt->hook,
		.pf	= pkt->flow.af,
		.net	= net,
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

/* Was the entry of @found, the client's direction, changed for @conn?  A real server's
 * packet may have been the first: then that direction is the reply's.
 */
static bool is_ours(const struct nf_conntrack_tuple_hash *found,
		    const struct l4lb_conn *conn)
{
	const struct nf_conn *ct = nf_ct_tuplehash_to_ctrack(found);
	const struct nf_conntrack_man *from =
		&ct->tuplehash[!NF_CT_DIRECTION(found)].tuple.src;

	return nf_inet_addr_cmp(&from->u3, &conn->server->sched.addr) &&
	       from->u.all == conn->dport;
}

/* Removes the entry of @conn, which is over.  Any context with RCU. */
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
	if (is_ours(found, conn))
		nf_ct_kill(ct);
	nf_ct_put(ct);
}

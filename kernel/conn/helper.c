// SPDX-License-Identifier: GPL-2.0
/*
 * Control connections keep their conntrack entry, whatever net.ipv4.vs.conntrack says, and
 * that entry has a helper.  The helper sees each packet after NAT, makes conntrack expect the
 * data connections that are announced, and writes the VIP where the real server has named
 * itself; conntrack then shifts the sequence numbers.
 *
 * A data connection is known by the master of its entry, see forward/related.c.
 */
#include "conn/helper.h"

#include <net/netfilter/nf_conntrack.h>
#include <net/netfilter/nf_conntrack_helper.h>
#include <net/netfilter/nf_conntrack_seqadj.h>

#include "conn/count.h"
#include "conn/lookup.h"
#include "service/find.h"
#include "service/pool.h"
#include "service/range.h"
#include "service/server_table.h"

#define SERVERS_SEARCHED	64U

DEFINE_STATIC_KEY_FALSE(l4lb_helper_on);

static const struct l4lb_helper __rcu *present;

bool l4lb_helper_controls(const struct l4lb_conn *conn)
{
	const struct l4lb_helper *helper = rcu_dereference(present);
	unsigned int i;

	if (!helper || conn->proto != IPPROTO_TCP ||
	    conn->method != IP_VS_CONN_F_MASQ)
		return false;
	for (i = 0; i < helper->n_ports; i++)
		if (conn->vport == helper->ports[i])
			return true;
	return false;
}

static bool has_port(const struct l4lb_svc_key *key, __be16 port)
{
	if (!l4lb_key_is_range(key))
		return !key->port || key->port == port;
	return ntohs(port) >= ntohs(key->port) && ntohs(port) <= ntohs(key->last_port);
}

bool l4lb_helper_serves(const struct l4lb_svc_key *key)
{
	const struct l4lb_helper *helper;
	bool serves = false;
	unsigned int i;

	if (!key->fwmark && key->protocol != IPPROTO_TCP)
		return false;
	rcu_read_lock();
	helper = rcu_dereference(present);
	for (i = 0; helper && i < helper->n_ports; i++)
		serves |= key->fwmark || has_port(key, helper->ports[i]);
	rcu_read_unlock();
	return serves;
}

/* Is this its client's first packet here? */
static bool joins(const struct l4lb_conn *conn)
{
	return l4lb_conn_test(conn, L4LB_CONN_SYNCED) && l4lb_conn_packets(conn) <= 1;
}

/* A helper that a rule of the firewall has chosen gives way: NAT comes first, and data
 * connections are related with this one, too.
 */
void l4lb_helper_attach(struct nf_conn *ct, const struct l4lb_conn *conn)
{
	const struct l4lb_helper *helper = rcu_dereference(present);
	struct nf_conn_help *help = nfct_help(ct);

	if (!helper || (!nfct_seqadj(ct) && !nfct_seqadj_ext_add(ct)))
		return;
	if (!help)
		help = nf_ct_helper_ext_add(ct, GFP_ATOMIC);
	if (!help || rcu_access_pointer(help->helper) == helper->ops)
		return;
	memset(help->data, 0, sizeof(help->data));
	if (joins(conn))
		helper->joins(ct);
	rcu_assign_pointer(help->helper, helper->ops);
	/* Nobody puts another one in its place. */
	set_bit(IPS_HELPER_BIT, &ct->status);
}

struct l4lb_conn *l4lb_helper_master(struct l4lb_net *ln, const struct nf_conn *ct)
{
	const struct l4lb_helper *helper = rcu_dereference(present);
	const struct nf_conn *master = ct->master;
	const struct nf_conntrack_tuple *tuple;
	const struct nf_conn_help *help;
	struct l4lb_flow flow;

	help = helper && master ? nfct_help(master) : NULL;
	if (!help || rcu_access_pointer(help->helper) != helper->ops)
		return NULL;
	tuple = &master->tuplehash[IP_CT_DIR_ORIGINAL].tuple;
	flow = (struct l4lb_flow) {
		.saddr	= tuple->src.u3,
		.daddr	= tuple->dst.u3,
		.sport	= tuple->src.u.all,
		.dport	= tuple->dst.u.all,
		.af	= tuple->src.l3num,
		.proto	= tuple->dst.protonum,
	};
	return l4lb_conn_find_in(ln, &flow);
}

/* @control: the service's port of control connections.  The port @port is the client's own
 * choice, and none of a system service, or lies beside the real server's: a record cannot
 * choose any other.
 */
static bool has_data(const struct l4lb_server *server, __be16 control,
		     const struct l4lb_flow *flow, __be16 port)
{
	return READ_ONCE(server->method) == IP_VS_CONN_F_MASQ &&
	       l4lb_server_available(server) &&
	       ((port == flow->dport && ntohs(port) >= L4LB_HELPER_PORT_MIN) ||
		(ntohs(flow->dport) + 1 == ntohs(control) &&
		 ntohs(port) + 1 == ntohs(server->name.port)));
}

/* The real servers of a service mostly have the same port, which the first one shows, or the
 * service's.  Others are found among the first few: who sends records chooses how often
 * this is done.
 */
static struct l4lb_server *server_of_data(const struct l4lb_service *svc, __be16 control,
					  const struct l4lb_flow *flow,
					  const union nf_inet_addr *addr, __be16 port)
{
	const struct l4lb_pool *pool = rcu_dereference(svc->pool);
	struct l4lb_server_name name = { .svc = svc->key, .addr = *addr, .af = flow->af };
	__be16 ports[] = { control, htons(ntohs(port) + 1), 0, 0 };
	struct l4lb_server *server;
	unsigned int i;

	if (pool->n)
		ports[3] = pool->server[0]->port;
	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		name.port = ports[i];
		server = l4lb_server_by_name_rcu(svc->ln, &name);
		if (server && has_data(server, control, flow, port))
			return server;
	}
	for (i = 0; i < min(pool->n, SERVERS_SEARCHED); i++) {
		server = l4lb_server_of(pool->server[i]);
		if (nf_inet_addr_cmp(&server->sched.addr, addr) &&
		    has_data(server, control, flow, port))
			return server;
	}
	return NULL;
}

struct l4lb_server *l4lb_helper_server(struct l4lb_net *ln, const struct l4lb_service *own,
				       const struct l4lb_flow *flow,
				       const union nf_inet_addr *addr, __be16 port)
{
	const struct l4lb_helper *helper = rcu_dereference(present);
	struct l4lb_server *server = NULL;
	struct l4lb_flow control = *flow;
	const struct l4lb_service *svc;
	unsigned int i;

	for (i = 0; helper && i < helper->n_ports && !server; i++) {
		control.dport = helper->ports[i];
		svc = l4lb_service_lookup(ln, own ? own->key.fwmark : 0, &control);
		if (svc && (!own || svc == own))
			server = server_of_data(svc, control.dport, flow, addr, port);
	}
	return server;
}

void l4lb_helper_seen(const struct sk_buff *skb, struct l4lb_net *ln)
{
	enum ip_conntrack_info info;
	const struct nf_conn *ct = nf_ct_get(skb, &info);
	struct l4lb_conn *control;

	if (!ct || !ct->master)
		return;
	control = l4lb_helper_master(ln, ct);
	if (control)
		l4lb_conn_touch(control);
}

int l4lb_helper_set(const struct l4lb_helper *helper)
{
	if (helper) {
		if (cmpxchg((const struct l4lb_helper __force **)&present, NULL, helper))
			return -EBUSY;
		static_branch_enable(&l4lb_helper_on);
	} else {
		RCU_INIT_POINTER(present, NULL);
		static_branch_disable(&l4lb_helper_on);
		synchronize_rcu();
	}
	return 0;
}

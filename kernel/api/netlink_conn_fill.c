// SPDX-License-Identifier: GPL-2.0
/* A connection as attributes, L4LB_CONN_ATTR_*. */
#include "api/netlink_conn_fill.h"

#include <net/netlink.h>

#include "conn/call.h"
#include "conn/state.h"
#include "conn/walk.h"
#include "entry/fast_admit.h"

/* A template of a service by mark: it stands for any protocol, VIP and port. */
bool l4lb_nl_is_of_mark(const struct l4lb_conn *conn)
{
	return l4lb_conn_fwmark(conn) &&
	       l4lb_conn_test(conn, L4LB_CONN_TEMPLATE);
}

u32 l4lb_nl_conn_flags(const struct l4lb_conn *conn)
{
	const struct l4lb_net *ln = l4lb_conn_net(conn);
	u32 flags = 0;

	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return L4LB_CONN_F_TEMPLATE;
	if (!l4lb_conn_test(conn, L4LB_CONN_INACTIVE))
		flags |= L4LB_CONN_F_ACTIVE;
	if (l4lb_fast_taken(ln, conn, false))
		flags |= L4LB_CONN_F_FAST_CLIENT;
	if (l4lb_fast_taken(ln, conn, true))
		flags |= L4LB_CONN_F_FAST_SERVER;
	return flags;
}

static int put_addr(struct sk_buff *skb, int attr, u16 af,
		    union nf_inet_addr addr)
{
	return nla_put(skb, attr, af == AF_INET ? sizeof(addr.ip) :
						  sizeof(addr.in6), &addr);
}

static int fill_flow(struct sk_buff *skb, const struct l4lb_conn *conn)
{
	u32 mark = l4lb_conn_fwmark(conn);

	if (nla_put_u16(skb, L4LB_CONN_ATTR_AF, conn->af) ||
	    put_addr(skb, L4LB_CONN_ATTR_CLIENT, conn->af,
		     l4lb_conn_client(conn)) ||
	    nla_put_be16(skb, L4LB_CONN_ATTR_CLIENT_PORT, conn->cport) ||
	    (mark && nla_put_u32(skb, L4LB_CONN_ATTR_FWMARK, mark)))
		return -EMSGSIZE;
	if (l4lb_nl_is_of_mark(conn))
		return 0;
	if (nla_put_u16(skb, L4LB_CONN_ATTR_PROTOCOL, conn->proto) ||
	    put_addr(skb, L4LB_CONN_ATTR_VIP, conn->af, l4lb_conn_vip(conn)) ||
	    nla_put_be16(skb, L4LB_CONN_ATTR_VPORT, conn->vport))
		return -EMSGSIZE;
	return 0;
}

static int fill_server(struct sk_buff *skb, const struct l4lb_conn *conn)
{
	u16 af = conn->server->sched.af;

	if ((af != conn->af &&
	     nla_put_u16(skb, L4LB_CONN_ATTR_SERVER_AF, af)) ||
	    put_addr(skb, L4LB_CONN_ATTR_SERVER, af, l4lb_conn_server(conn)) ||
	    nla_put_be16(skb, L4LB_CONN_ATTR_SERVER_PORT, conn->dport) ||
	    nla_put_u32(skb, L4LB_CONN_ATTR_FWD_METHOD,
			conn->method & IP_VS_CONN_F_FWD_MASK))
		return -EMSGSIZE;
	if (conn->method == L4LB_FULL_NAT &&
	    (put_addr(skb, L4LB_CONN_ATTR_LOCAL, conn->af, conn->local.addr) ||
	     nla_put_be16(skb, L4LB_CONN_ATTR_LOCAL_PORT, conn->local.port)))
		return -EMSGSIZE;
	return 0;
}

/* The template that @conn was created through, while @conn is alive. */
static int fill_template(struct sk_buff *skb, const struct l4lb_conn *conn)
{
	union nf_inet_addr client;
	struct nlattr *nest;
	bool dead;
	__be16 vport;

	if (!l4lb_conn_test(conn, L4LB_CONN_CONTROLLED))
		return 0;
	spin_lock_bh(l4lb_conn_lock(conn));
	dead = l4lb_conn_test(conn, L4LB_CONN_DEAD);
	if (!dead) {
		client = l4lb_conn_client(conn->control);
		vport = conn->control->vport;
	}
	spin_unlock_bh(l4lb_conn_lock(conn));
	if (dead)
		return 0;
	nest = nla_nest_start(skb, L4LB_CONN_ATTR_TEMPLATE);
	if (!nest ||
	    put_addr(skb, L4LB_CONN_ATTR_CLIENT, conn->af, client) ||
	    nla_put_be16(skb, L4LB_CONN_ATTR_VPORT, vport))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Connections that hold a template. */
static u32 holders(const struct l4lb_conn *template)
{
	u32 n = atomic_read(&template->n_holders);

	smp_rmb();	/* in a dead template the RCU head overlays n_holders */
	return l4lb_conn_test(template, L4LB_CONN_DEAD) ? 0 : n;
}

static int fill_call(struct sk_buff *skb, const struct l4lb_conn *template)
{
	const struct l4lb_call *call = l4lb_conn_call(template);
	struct nlattr *attr;

	if (!call)
		return 0;
	attr = nla_reserve(skb, L4LB_CONN_ATTR_CALL_ID, call->len + 1);
	if (!attr)
		return -EMSGSIZE;
	memcpy(nla_data(attr), call->id, call->len);
	((char *)nla_data(attr))[call->len] = '\0';
	return 0;
}

static int fill_state(struct sk_buff *skb, const struct l4lb_conn *conn)
{
	u64 left = div_u64((u64)l4lb_conn_left(conn) * MSEC_PER_SEC, HZ);

	if (nla_put_string(skb, L4LB_CONN_ATTR_STATE, l4lb_state_name(conn)) ||
	    nla_put_u32(skb, L4LB_CONN_ATTR_FLAGS, l4lb_nl_conn_flags(conn)) ||
	    nla_put_u64_64bit(skb, L4LB_CONN_ATTR_EXPIRES, left,
			      L4LB_CONN_ATTR_PAD))
		return -EMSGSIZE;
	if (!l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return fill_template(skb, conn);
	return nla_put_u32(skb, L4LB_CONN_ATTR_HOLDERS, holders(conn)) ?:
	       fill_call(skb, conn);
}

int l4lb_nl_fill_conn(struct sk_buff *skb, const struct l4lb_conn *conn)
{
	return fill_flow(skb, conn) ?: fill_server(skb, conn) ?:
	       fill_state(skb, conn);
}

static int put_time(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, L4LB_CONN_ATTR_PAD);
}

/* Milliseconds that it has been there. */
static u64 age_of(const struct l4lb_conn *conn)
{
	return READ_ONCE(conn->uses) & L4LB_USE_CLOCK ?
	       div_u64(ktime_get_ns() - conn->began, NSEC_PER_MSEC) :
	       jiffies64_to_msecs(get_jiffies_64() - conn->began);
}

int l4lb_nl_fill_ended(struct sk_buff *skb, const struct l4lb_conn *conn,
		       enum l4lb_end why)
{
	u32 flags = READ_ONCE(conn->uses) & L4LB_USE_COPY ? L4LB_CONN_F_COPY : 0;
	u64 lasted = age_of(conn);
	u64 idle = jiffies_to_msecs(max(l4lb_conn_idle(conn), 0));

	if (fill_flow(skb, conn) || fill_server(skb, conn) ||
	    nla_put_string(skb, L4LB_CONN_ATTR_STATE, l4lb_state_name(conn)) ||
	    nla_put_u32(skb, L4LB_CONN_ATTR_FLAGS, flags) ||
	    nla_put_u32(skb, L4LB_CONN_ATTR_WHY, why) ||
	    put_time(skb, L4LB_CONN_ATTR_ENDED, ktime_get_real_ns()) ||
	    put_time(skb, L4LB_CONN_ATTR_LASTED, lasted) ||
	    put_time(skb, L4LB_CONN_ATTR_IDLE, min(idle, lasted)))
		return -EMSGSIZE;
	return 0;
}

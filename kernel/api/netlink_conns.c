// SPDX-License-Identifier: GPL-2.0
/*
 * L4LB_CMD_GET_CONNS: list connections and templates that pass a filter.
 * L4LB_CMD_KILL_CONNS: end them.
 *
 * A dump is one walk of the connection table, which keeps its place from one
 * buffer to the next (conn/walk.c).  So it does not lock the table, takes
 * linear time, and lists a connection that stays in the table exactly once.
 * A filter is a connection with only some attributes.
 */
#include "api/netlink_conns.h"

#include <linux/inetdevice.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/netlink.h>

#include "api/netlink_conn_fill.h"
#include "api/netlink_l4lb.h"
#include "api/netlink_parse.h"
#include "conn/state.h"
#include "conn/walk.h"
#include "conn/watch.h"
#include "forward/reset.h"

enum {
	STATE_LEN	= 16,	/* longer than any name */
	KILL_BATCH	= 512,	/* connections */
	FLAGS_ALL	= L4LB_CONN_F_TEMPLATE | L4LB_CONN_F_ACTIVE |
			  L4LB_CONN_F_FAST_CLIENT | L4LB_CONN_F_FAST_SERVER,
};

/* Types of a filter's attributes; parse_filter() checks most values. */
const struct nla_policy l4lb_nl_conn_policy[] = {
	[L4LB_CONN_ATTR_AF]	= { .type = NLA_U16 },
	[L4LB_CONN_ATTR_PROTOCOL] = { .type = NLA_U16 },
	[L4LB_CONN_ATTR_CLIENT]	= { .type = NLA_BINARY },
	[L4LB_CONN_ATTR_CLIENT_PORT] = { .type = NLA_U16 },
	[L4LB_CONN_ATTR_CLIENT_LEN] = { .type = NLA_U8 },
	[L4LB_CONN_ATTR_VIP]	= { .type = NLA_BINARY },
	[L4LB_CONN_ATTR_VPORT]	= { .type = NLA_U16 },
	[L4LB_CONN_ATTR_FWMARK]	= { .type = NLA_U32 },
	[L4LB_CONN_ATTR_SERVER_AF] = { .type = NLA_U16 },
	[L4LB_CONN_ATTR_SERVER]	= { .type = NLA_BINARY },
	[L4LB_CONN_ATTR_SERVER_PORT] = { .type = NLA_U16 },
	[L4LB_CONN_ATTR_STATE]	= { .type = NLA_NUL_STRING },
	[L4LB_CONN_ATTR_FLAGS]	= NLA_POLICY_MASK(NLA_U32, FLAGS_ALL),
};

enum {
	FILTER_MAX	= ARRAY_SIZE(l4lb_nl_conn_policy) - 1,
};

/* Which connections a dump lists. */
struct filter {
	unsigned long		has;		/* bits L4LB_CONN_ATTR_*; bit 0: svc */
	struct l4lb_svc_key	svc;
	u16			af;		/* of client and vip */
	u16			server_af;
	u16			proto;
	u8			client_len;	/* prefix length */
	union nf_inet_addr	client;
	union nf_inet_addr	vip;
	union nf_inet_addr	server;
	__be16			client_port;
	__be16			vport;
	__be16			server_port;
	u32			fwmark;
	u32			flags;
	char			state[STATE_LEN];
};

/* State of a dump, kept from the first buffer to the last. */
struct dump {
	struct l4lb_conn_walk	*walk;
	struct filter		filter;
};

/* ---- requests ---- */

static int parse_family(u16 *af, const struct nlattr *attr,
			struct netlink_ext_ack *extack)
{
	if (!attr)
		return 0;
	*af = nla_get_u16(attr);
	if (*af == AF_INET || *af == AF_INET6)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "connection: family must be IPv4 (2) or IPv6 (10)");
	return -EINVAL;
}

static int parse_addr(union nf_inet_addr *addr, u16 af,
		      const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	if (!attr)
		return 0;
	if (!af) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "connection: an address needs its family, and AF is missing");
		return -EINVAL;
	}
	if (nla_len(attr) != sizeof(addr->in6) &&
	    (af != AF_INET || nla_len(attr) != sizeof(addr->ip))) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "connection: the address must have 16 bytes, or 4 for IPv4");
		return -EINVAL;
	}
	nla_memcpy(addr, attr, af == AF_INET ? sizeof(addr->ip) :
					       sizeof(addr->in6));
	return 0;
}

static int parse_protocol(u16 *proto, const struct nlattr *attr,
			  struct netlink_ext_ack *extack)
{
	if (!attr)
		return 0;
	*proto = nla_get_u16(attr);
	if (*proto == IPPROTO_TCP || *proto == IPPROTO_UDP ||
	    *proto == IPPROTO_SCTP)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "connection: protocol must be TCP (6), UDP (17) or SCTP (132)");
	return -EINVAL;
}

static int parse_client_len(struct filter *f, struct nlattr **tb,
			    struct netlink_ext_ack *extack)
{
	const struct nlattr *len = tb[L4LB_CONN_ATTR_CLIENT_LEN];
	u8 max = f->af == AF_INET ? 32 : 128;

	f->client_len = len ? nla_get_u8(len) : max;
	if (len && !tb[L4LB_CONN_ATTR_CLIENT]) {
		NL_SET_ERR_MSG_ATTR(extack, len,
				    "connection: CLIENT_LEN is of no use without CLIENT");
		return -EINVAL;
	}
	if (f->client_len <= max)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, len,
			    "connection: CLIENT_LEN must be 0 to 32, with IPv6 to 128");
	return -EINVAL;
}

static int parse_state(char *state, const struct nlattr *attr,
		       struct netlink_ext_ack *extack)
{
	if (!attr)
		return 0;
	nla_strscpy(state, attr, STATE_LEN);
	if (l4lb_state_known(state))
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "connection: unknown state: it is spelled as in /proc/net/ip_vs_conn");
	return -EINVAL;
}

static int parse_fwmark(u32 *mark, const struct nlattr *attr,
			struct netlink_ext_ack *extack)
{
	if (!attr)
		return 0;
	*mark = nla_get_u32(attr);
	if (*mark)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "connection: FWMARK must be 1 or more");
	return -EINVAL;
}

static __be16 get_port(const struct nlattr *attr)
{
	return attr ? nla_get_be16(attr) : 0;
}

static int parse_filter(struct filter *f, struct nlattr **attrs,
			struct netlink_ext_ack *extack)
{
	const struct nlattr *nest = attrs[L4LB_ATTR_CONN];
	struct nlattr *tb[FILTER_MAX + 1];
	unsigned int i;
	int err;

	if (attrs[L4LB_ATTR_SERVICE]) {
		err = l4lb_nl_parse_service_name(&f->svc, attrs, extack);
		if (err)
			return err;
		__set_bit(L4LB_CONN_ATTR_UNSPEC, &f->has);
	}
	if (!nest)
		return 0;
	err = nla_parse_nested(tb, FILTER_MAX, nest, l4lb_nl_conn_policy,
			       extack);
	if (err)
		return err;
	for (i = 1; i <= FILTER_MAX; i++)
		if (tb[i])
			__set_bit(i, &f->has);
	err = parse_family(&f->af, tb[L4LB_CONN_ATTR_AF], extack);
	f->server_af = f->af;
	err = err ?:
	      parse_family(&f->server_af, tb[L4LB_CONN_ATTR_SERVER_AF],
			   extack) ?:
	      parse_protocol(&f->proto, tb[L4LB_CONN_ATTR_PROTOCOL], extack) ?:
	      parse_addr(&f->client, f->af, tb[L4LB_CONN_ATTR_CLIENT],
			 extack) ?:
	      parse_client_len(f, tb, extack) ?:
	      parse_addr(&f->vip, f->af, tb[L4LB_CONN_ATTR_VIP], extack) ?:
	      parse_addr(&f->server, f->server_af, tb[L4LB_CONN_ATTR_SERVER],
			 extack) ?:
	      parse_fwmark(&f->fwmark, tb[L4LB_CONN_ATTR_FWMARK], extack) ?:
	      parse_state(f->state, tb[L4LB_CONN_ATTR_STATE], extack);
	f->client_port = get_port(tb[L4LB_CONN_ATTR_CLIENT_PORT]);
	f->vport = get_port(tb[L4LB_CONN_ATTR_VPORT]);
	f->server_port = get_port(tb[L4LB_CONN_ATTR_SERVER_PORT]);
	if (tb[L4LB_CONN_ATTR_FLAGS])
		f->flags = nla_get_u32(tb[L4LB_CONN_ATTR_FLAGS]);
	return err;
}

/* ---- connections ---- */

/* Both addresses are of family @af. */
static bool same_prefix(u16 af, const union nf_inet_addr *a,
			const union nf_inet_addr *b, unsigned int len)
{
	if (af == AF_INET)
		return !((a->ip ^ b->ip) & inet_make_mask(len));
	return ipv6_prefix_equal(&a->in6, &b->in6, len);
}

static bool same_addr(u16 af, union nf_inet_addr a, const union nf_inet_addr *b)
{
	return same_prefix(af, &a, b, af == AF_INET ? 32 : 128);
}

static bool has(const struct filter *f, unsigned int attr)
{
	return f->has & BIT(attr);
}

static bool client_passes(const struct filter *f, const struct l4lb_conn *conn)
{
	union nf_inet_addr client = l4lb_conn_client(conn);

	if (has(f, L4LB_CONN_ATTR_CLIENT) &&
	    !same_prefix(f->af, &client, &f->client, f->client_len))
		return false;
	return !has(f, L4LB_CONN_ATTR_CLIENT_PORT) ||
	       conn->cport == f->client_port;
}

static bool service_passes(const struct filter *f, const struct l4lb_conn *conn)
{
	if (has(f, L4LB_CONN_ATTR_FWMARK) &&
	    l4lb_conn_fwmark(conn) != f->fwmark)
		return false;
	if (has(f, L4LB_CONN_ATTR_PROTOCOL) && conn->proto != f->proto)
		return false;
	if (has(f, L4LB_CONN_ATTR_VIP) &&
	    (l4lb_nl_is_of_mark(conn) ||
	     !same_addr(f->af, l4lb_conn_vip(conn), &f->vip)))
		return false;
	return !has(f, L4LB_CONN_ATTR_VPORT) ||
	       (!l4lb_nl_is_of_mark(conn) && conn->vport == f->vport);
}

static bool server_passes(const struct filter *f, const struct l4lb_conn *conn)
{
	u16 af = conn->server->sched.af;

	if (has(f, L4LB_CONN_ATTR_SERVER_AF) && af != f->server_af)
		return false;
	if (has(f, L4LB_CONN_ATTR_SERVER) &&
	    (af != f->server_af ||
	     !same_addr(af, l4lb_conn_server(conn), &f->server)))
		return false;
	return !has(f, L4LB_CONN_ATTR_SERVER_PORT) ||
	       conn->dport == f->server_port;
}

static bool passes(const struct filter *f, const struct l4lb_conn *conn)
{
	if (!f->has)
		return true;
	if (has(f, L4LB_CONN_ATTR_AF) && conn->af != f->af)
		return false;
	if (has(f, L4LB_CONN_ATTR_UNSPEC) &&
	    memcmp(&conn->server->name.svc, &f->svc, sizeof(f->svc)))
		return false;
	if (!client_passes(f, conn) || !service_passes(f, conn) ||
	    !server_passes(f, conn))
		return false;
	if (has(f, L4LB_CONN_ATTR_STATE) &&
	    strcmp(l4lb_state_name(conn), f->state))
		return false;
	return !f->flags || !(f->flags & ~l4lb_nl_conn_flags(conn));
}

/* ---- replies ---- */

static int dump_one(struct sk_buff *skb, const struct netlink_callback *cb,
		    const struct l4lb_conn *conn)
{
	struct nlattr *nest;
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &l4lb_ext_family, NLM_F_MULTI, L4LB_CMD_GET_CONNS);
	if (!hdr)
		return -EMSGSIZE;
	nest = nla_nest_start(skb, L4LB_ATTR_CONN);
	if (!nest || l4lb_nl_fill_conn(skb, conn)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	genlmsg_end(skb, hdr);
	return 0;
}

/* ---- the command ---- */

static struct dump *dump_of(const struct netlink_callback *cb)
{
	return (struct dump *)cb->args[0];
}

/* Netlink makes its buffers as large as the caller's recv() buffer.  A larger
 * min_dump_alloc would truncate answers to callers with smaller buffers.
 */
int l4lb_nl_start_conns(struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(cb->skb, cb->extack);
	struct dump *dump;
	int err;

	if (!ln)
		return -EAGAIN;
	dump = kzalloc(sizeof(*dump), GFP_KERNEL);
	if (!dump)
		return -ENOMEM;
	err = parse_filter(&dump->filter, l4lb_dump_attrs(cb), cb->extack);
	if (err)
		goto free_dump;
	err = -ENOMEM;
	dump->walk = l4lb_conn_walk_open(ln);
	if (!dump->walk)
		goto free_dump;
	cb->args[0] = (long)dump;
	return 0;

free_dump:
	kfree(dump);
	return err;
}

int l4lb_nl_dump_conns(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump *dump = dump_of(cb);
	const struct l4lb_conn *conn;

	l4lb_conn_walk_start(dump->walk);
	while ((conn = l4lb_conn_walk_next(dump->walk))) {
		if (!passes(&dump->filter, conn) || !dump_one(skb, cb, conn))
			continue;
		/* No room is left: list it in the next buffer. */
		l4lb_conn_walk_back(dump->walk);
		break;
	}
	l4lb_conn_walk_stop(dump->walk);
	return skb->len;
}

int l4lb_nl_done_conns(struct netlink_callback *cb)
{
	struct dump *dump = dump_of(cb);

	l4lb_conn_walk_close(dump->walk);
	kfree(dump);
	return 0;
}

/* ---- KILL_CONNS ---- */

static void kill_conn(struct l4lb_conn *conn, bool reset)
{
	if (reset && !l4lb_conn_test(conn, L4LB_CONN_TEMPLATE)) {
		local_bh_disable();
		l4lb_reset_both(conn);
		local_bh_enable();
	}
	l4lb_conn_end_early(conn, L4LB_END_KILLED);
}

/* Kills in batches, and breathes in between: nobody else waits for the end.  The
 * walk breathes by itself where nothing passes.
 */
static int kill_all(struct l4lb_conn_walk *walk, const struct filter *f,
		    bool reset, u64 *count)
{
	struct l4lb_conn *conn;
	unsigned int n;

	do {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		l4lb_conn_walk_start(walk);
		for (n = 0; n < KILL_BATCH; n++) {
			do {
				conn = l4lb_conn_walk_next(walk);
			} while (conn && !passes(f, conn));
			if (!conn)
				break;
			kill_conn(conn, reset);
		}
		l4lb_conn_walk_stop(walk);
		*count += n;
	} while (n == KILL_BATCH);
	return 0;
}

int l4lb_nl_kill_conns(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *nest = info->attrs[L4LB_ATTR_CONN];
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_conn_walk *walk;
	struct filter filter = { };
	struct sk_buff *msg;
	u64 count = 0;
	void *hdr;
	int err;

	if (!nest) {
		NL_SET_ERR_MSG(info->extack,
			       "attribute CONN is missing: say which connections, an empty one means all");
		return -EINVAL;
	}
	err = parse_filter(&filter, info->attrs, info->extack);
	if (err)
		return err;
	msg = l4lb_nl_reply_new(info, &hdr);
	if (!msg)
		return -ENOMEM;
	walk = l4lb_conn_walk_open(ln);
	err = walk ? kill_all(walk, &filter, info->attrs[L4LB_ATTR_RESET],
			      &count) : -ENOMEM;
	l4lb_conn_walk_close(walk);
	if (!err)
		err = nla_put_u64_64bit(msg, L4LB_ATTR_COUNT, count,
					L4LB_ATTR_PAD);
	return l4lb_nl_reply_send(info, msg, hdr, err);
}

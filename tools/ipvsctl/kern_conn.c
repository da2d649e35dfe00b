// SPDX-License-Identifier: GPL-2.0
/* L4LB_CMD_GET_CONNS: the kernel applies the filter. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern_conn.h"
#include "kern_msg.h"
#include "proc.h"
#include "wire.h"
#include "../../kernel/l4lb.h"

struct reader {
	bool (*fn)(const struct conn *c, void *arg);
	void *arg;
};

static uint16_t get_port(struct nlattr **tb, int attr)
{
	return tb[attr] && nla_len(tb[attr]) >= 2 ? ntohs(nla_get_u16(tb[attr]))
						  : 0;
}

static uint16_t get_u16(struct nlattr **tb, int attr, uint16_t none)
{
	return tb[attr] && nla_len(tb[attr]) >= 2 ? nla_get_u16(tb[attr])
						  : none;
}

static uint32_t get_u32(struct nlattr **tb, int attr)
{
	return tb[attr] && nla_len(tb[attr]) >= 4 ? nla_get_u32(tb[attr]) : 0;
}

static void get_addr(struct nlattr **tb, int attr, struct ip *ip)
{
	if (tb[attr])
		nla_memcpy(ip->b, tb[attr], sizeof(ip->b));
}

void kern_conn_take(struct nlattr **tb, struct conn *c)
{
	uint32_t flags = get_u32(tb, L4LB_CONN_ATTR_FLAGS);

	*c = (struct conn){ .known = true };
	c->af = get_u16(tb, L4LB_CONN_ATTR_AF, AF_INET);
	c->server_af = get_u16(tb, L4LB_CONN_ATTR_SERVER_AF, c->af);
	c->proto = get_u16(tb, L4LB_CONN_ATTR_PROTOCOL, 0);
	get_addr(tb, L4LB_CONN_ATTR_CLIENT, &c->client);
	get_addr(tb, L4LB_CONN_ATTR_VIP, &c->vip);
	get_addr(tb, L4LB_CONN_ATTR_SERVER, &c->server);
	c->client_port = get_port(tb, L4LB_CONN_ATTR_CLIENT_PORT);
	c->vport = get_port(tb, L4LB_CONN_ATTR_VPORT);
	c->server_port = get_port(tb, L4LB_CONN_ATTR_SERVER_PORT);
	if (tb[L4LB_CONN_ATTR_STATE])
		nla_strlcpy(c->state, tb[L4LB_CONN_ATTR_STATE],
			    sizeof(c->state));
	if (tb[L4LB_CONN_ATTR_EXPIRES] &&
	    nla_len(tb[L4LB_CONN_ATTR_EXPIRES]) >= 8)
		c->expires = (uint32_t)
			(nla_get_u64(tb[L4LB_CONN_ATTR_EXPIRES]) / 1000);
	c->mark = get_u32(tb, L4LB_CONN_ATTR_FWMARK);
	c->forward = get_u32(tb, L4LB_CONN_ATTR_FWD_METHOD);
	c->template = flags & L4LB_CONN_F_TEMPLATE;
	c->fast_client = flags & L4LB_CONN_F_FAST_CLIENT;
	c->fast_server = flags & L4LB_CONN_F_FAST_SERVER;
	c->holders = get_u32(tb, L4LB_CONN_ATTR_HOLDERS);
	if (tb[L4LB_CONN_ATTR_CALL_ID]) {
		strcpy(c->pe, "sip");
		nla_strlcpy(c->pe_data, tb[L4LB_CONN_ATTR_CALL_ID], sizeof(c->pe_data));
	}
	if (tb[L4LB_CONN_ATTR_LOCAL]) {
		c->has_local = true;
		get_addr(tb, L4LB_CONN_ATTR_LOCAL, &c->local);
		c->local_port = get_port(tb, L4LB_CONN_ATTR_LOCAL_PORT);
	}
	/* A template of a service by mark has no VIP. */
	if (c->template)
		c->fwmark = c->mark;
}

static void take_message(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1], *tb[L4LB_CONN_ATTR_MAX + 1];
	struct reader *reader = arg;
	struct conn c;

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0 ||
	    !top[L4LB_ATTR_CONN] ||
	    nla_parse_nested(tb, L4LB_CONN_ATTR_MAX, top[L4LB_ATTR_CONN],
			     NULL) < 0)
		return;
	kern_conn_take(tb, &c);
	if (!reader->fn(&c, reader->arg))
		wire_enough();
}

/* Adds a second condition on @value; false if they contradict each other. */
static bool agree(uint16_t *value, bool *set, uint16_t other)
{
	if (*set && *value != other)
		return false;
	*value = other;
	*set = true;
	return true;
}

static void put_addr(struct nl_msg *msg, int attr, uint16_t af,
		     const struct ip *ip)
{
	nla_put(msg, attr, af == AF_INET ? 4 : 16, ip->b);
}

/* False if conditions contradict each other: no connection can pass. */
static bool put_filter(struct nl_msg *msg, const struct conn_filter *f)
{
	bool by_af = f->af, by_proto = f->by_proto;
	uint16_t af = f->af, proto = f->proto;
	bool by_range = f->by_service && svc_is_range(&f->service);
	bool by_vip = f->by_service && !f->service.fwmark && !by_range;

	if ((f->by_service && !agree(&af, &by_af, f->service.af)) ||
	    (f->by_client && !agree(&af, &by_af, f->client_af)) ||
	    ((by_vip || by_range) && !agree(&proto, &by_proto, f->service.proto)))
		return false;
	if (by_af)
		nla_put_u16(msg, L4LB_CONN_ATTR_AF, af);
	if (by_proto)
		nla_put_u16(msg, L4LB_CONN_ATTR_PROTOCOL, proto);
	if (f->by_client) {
		put_addr(msg, L4LB_CONN_ATTR_CLIENT, af, &f->client);
		nla_put_u8(msg, L4LB_CONN_ATTR_CLIENT_LEN,
			   (uint8_t)f->client_len);
	}
	if (by_vip)
		put_addr(msg, L4LB_CONN_ATTR_VIP, af, &f->service.addr);
	else if (f->by_service && !by_range)
		nla_put_u32(msg, L4LB_CONN_ATTR_FWMARK, f->service.fwmark);
	if (by_vip && f->service.port)
		nla_put_u16(msg, L4LB_CONN_ATTR_VPORT, htons(f->service.port));
	if (f->by_server) {
		nla_put_u16(msg, L4LB_CONN_ATTR_SERVER_AF, f->server.af);
		put_addr(msg, L4LB_CONN_ATTR_SERVER, f->server.af,
			 &f->server.addr);
	}
	if (f->by_server && f->server.has_port)
		nla_put_u16(msg, L4LB_CONN_ATTR_SERVER_PORT,
			    htons(f->server.port));
	if (f->state)
		nla_put_string(msg, L4LB_CONN_ATTR_STATE, f->state);
	if (f->template)
		nla_put_u32(msg, L4LB_CONN_ATTR_FLAGS, L4LB_CONN_F_TEMPLATE);
	return true;
}

/* In @msg a request for the connections that pass @f, or NULL: none can. */
static int new_request(struct nl_msg **msg, int cmd, int flags,
		       const struct conn_filter *f)
{
	struct nlattr *nest;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	*msg = wire_own_request(cmd, flags);
	if (!*msg)
		return -ENOMEM;
	if (f->by_service && svc_is_range(&f->service)) {
		nest = nla_nest_start(*msg, L4LB_ATTR_SERVICE);
		kern_put_ident(*msg, &f->service);
		nla_nest_end(*msg, nest);
	}
	nest = nla_nest_start(*msg, L4LB_ATTR_CONN);
	if (put_filter(*msg, f)) {
		nla_nest_end_keep_empty(*msg, nest);
	} else {
		nlmsg_free(*msg);
		*msg = NULL;
	}
	return 0;
}

int kern_conns(const struct conn_filter *f,
	       bool (*fn)(const struct conn *c, void *arg), void *arg)
{
	struct reader reader = { .fn = fn, .arg = arg };
	struct nl_msg *msg;
	int err = new_request(&msg, L4LB_CMD_GET_CONNS, NLM_F_DUMP, f);

	return err || !msg ? err : wire_call(msg, take_message, &reader);
}

static void take_count(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1];

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) >= 0 &&
	    top[L4LB_ATTR_COUNT] && nla_len(top[L4LB_ATTR_COUNT]) >= 8)
		*(uint64_t *)arg = nla_get_u64(top[L4LB_ATTR_COUNT]);
}

int kern_conns_kill(const struct conn_filter *f, bool reset, uint64_t *count)
{
	struct nl_msg *msg;
	int err = new_request(&msg, L4LB_CMD_KILL_CONNS, 0, f);

	*count = 0;
	if (err || !msg)
		return err;
	if (reset)
		nla_put_flag(msg, L4LB_ATTR_RESET);
	return wire_call(msg, take_count, count);
}

// SPDX-License-Identifier: GPL-2.0
/* Events: a numbered group, and messages about peers, which have no number. */
#include <errno.h>
#include <sys/socket.h>

#include <linux/ip_vs.h>
#include <netlink/attr.h>

#include "kern_event.h"
#include "kern_group.h"
#include "kern_msg.h"

static struct group events = {
	.name = L4LB_GENL_EVENTS, .cmd = L4LB_CMD_GET_EVENT,
};

struct reader {
	void (*fn)(const struct event *e, void *arg);
	void *arg;
};

int kern_event_open(void)
{
	return group_open(&events);
}

void kern_event_close(void)
{
	group_close(&events);
}

int kern_event_fd(void)
{
	return group_fd(&events);
}

static void tell_lost(uint64_t n, void *arg)
{
	struct event e = { .what = EVENT_LOST, .count = n };
	const struct reader *r = arg;

	r->fn(&e, r->arg);
}

static void take_peer(struct nlattr *nest, struct event *e)
{
	struct nlattr *tb[L4LB_PEER_ATTR_MAX + 1], *addr;

	if (nla_parse_nested(tb, L4LB_PEER_ATTR_MAX, nest, NULL) < 0 ||
	    !tb[L4LB_PEER_ATTR_ADDR])
		return;
	addr = tb[L4LB_PEER_ATTR_ADDR];
	e->what = EVENT_PEER;
	e->peer_af = nla_len(addr) == 4 ? AF_INET : AF_INET6;
	nla_memcpy(e->peer.b, addr, sizeof(e->peer.b));
	e->peer_state = kern_get_u32(tb[L4LB_PEER_ATTR_STATE]);
}

static void take_objects(struct nlattr **top, struct event *e)
{
	struct nlattr *tb[SVC_ATTR_MAX + 1];
	struct nlattr *dest[IPVS_DEST_ATTR_MAX + 1], *nest;
	int left;

	if (!top[L4LB_ATTR_SERVICE] ||
	    nla_parse_nested(tb, SVC_ATTR_MAX, top[L4LB_ATTR_SERVICE],
			     NULL) < 0)
		return;
	e->has_service = true;
	kern_get_service(tb, &e->svc);
	if (!top[L4LB_ATTR_DESTS])
		return;
	nla_for_each_nested(nest, top[L4LB_ATTR_DESTS], left) {
		if (nla_parse_nested(dest, IPVS_DEST_ATTR_MAX, nest, NULL) < 0)
			return;
		e->has_server = true;
		kern_get_server(dest, &e->svc, &e->srv);
	}
}

static void take_message(struct nlmsghdr *nlh, struct nlattr **top, void *arg)
{
	const struct reader *r = arg;
	struct event e = { 0 };

	(void)nlh;
	if (top[L4LB_ATTR_PEER]) {
		take_peer(top[L4LB_ATTR_PEER], &e);
	} else if (top[L4LB_ATTR_EVENT] && top[L4LB_ATTR_SEQ]) {
		e.what = kern_get_u32(top[L4LB_ATTR_EVENT]);
		if (top[L4LB_ATTR_COUNT])
			e.count = nla_get_u64(top[L4LB_ATTR_COUNT]);
		take_objects(top, &e);
	}
	if (e.what)
		r->fn(&e, r->arg);
}

int kern_event_read(void (*fn)(const struct event *e, void *arg), void *arg)
{
	struct reader r = { .fn = fn, .arg = arg };
	const struct group_reader reader = {
		.fn = take_message, .lost = tell_lost, .arg = &r,
	};

	return group_read(&events, &reader);
}

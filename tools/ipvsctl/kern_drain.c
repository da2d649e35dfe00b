// SPDX-License-Identifier: GPL-2.0
/* L4LB_CMD_SET_DRAIN and L4LB_CMD_GET_DRAIN. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "describe.h"
#include "kern.h"
#include "kern_drain.h"
#include "kern_msg.h"
#include "model.h"
#include "wire.h"
#include "../../kernel/l4lb.h"

bool kern_has_drains(void)
{
	return wire_has_own();
}

static struct nl_msg *request(const struct svc_id *id, const struct server *srv,
			      struct nlattr **nest)
{
	struct nl_msg *msg = wire_own_request(L4LB_CMD_SET_DRAIN, 0);
	struct nlattr *service;

	if (!msg)
		return NULL;
	service = nla_nest_start(msg, L4LB_ATTR_SERVICE);
	kern_put_ident(msg, id);
	nla_nest_end(msg, service);
	*nest = nla_nest_start(msg, L4LB_ATTR_DRAIN);
	nla_put(msg, L4LB_DRAIN_ATTR_ADDR, sizeof(srv->addr), &srv->addr);
	nla_put_u16(msg, L4LB_DRAIN_ATTR_PORT, htons(srv->port));
	nla_put_u16(msg, L4LB_DRAIN_ATTR_AF, srv->af);
	return msg;
}

int kern_drain(const struct svc_id *id, const struct server *srv,
	       uint32_t secs, uint32_t then)
{
	struct nlattr *nest;
	struct nl_msg *msg;

	if (kern_announce("set", describe_server(id, srv)))
		return 0;
	msg = request(id, srv, &nest);
	if (!msg)
		return -ENOMEM;
	if (secs)
		nla_put_u32(msg, L4LB_DRAIN_ATTR_SECONDS, secs);
	nla_put_u32(msg, L4LB_DRAIN_ATTR_THEN, then);
	nla_nest_end(msg, nest);
	return wire_call(msg, NULL, NULL);
}

int kern_drain_weight(const struct svc_id *id, const struct server *srv,
		      uint32_t weight)
{
	struct nlattr *nest;
	struct nl_msg *msg = request(id, srv, &nest);

	if (!msg)
		return -ENOMEM;
	nla_put_u32(msg, L4LB_DRAIN_ATTR_LAST_WEIGHT, weight);
	nla_nest_end(msg, nest);
	return wire_call(msg, NULL, NULL);
}

static void take_drain(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1], *key[SVC_ATTR_MAX + 1];
	struct nlattr *tb[L4LB_DRAIN_ATTR_MAX + 1];
	struct service named = { 0 }, *svc;
	struct service_list *list = arg;
	struct ip addr = { 0 };
	struct server *srv;

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0 ||
	    !top[L4LB_ATTR_SERVICE] || !top[L4LB_ATTR_DRAIN] ||
	    nla_parse_nested(key, SVC_ATTR_MAX, top[L4LB_ATTR_SERVICE],
			     NULL) < 0 ||
	    nla_parse_nested(tb, L4LB_DRAIN_ATTR_MAX, top[L4LB_ATTR_DRAIN],
			     NULL) < 0 || !tb[L4LB_DRAIN_ATTR_ADDR])
		return;
	kern_get_service(key, &named);
	svc = service_find(list, &named.id);
	nla_memcpy(addr.b, tb[L4LB_DRAIN_ATTR_ADDR], sizeof(addr.b));
	srv = svc ? server_find(svc, kern_get_u16(tb[L4LB_DRAIN_ATTR_AF]),
				&addr,
				ntohs(kern_get_u16(tb[L4LB_DRAIN_ATTR_PORT])))
		  : NULL;
	if (srv && srv->weight && tb[L4LB_DRAIN_ATTR_RAMP]) {
		srv->ramp.on = true;
		srv->ramp.percent = kern_get_u32(tb[L4LB_DRAIN_ATTR_RAMP]);
	}
	/* It may have got a weight since the list was read. */
	if (!srv || srv->weight)
		return;
	srv->drain.known = true;
	srv->drain.weight = kern_get_u32(tb[L4LB_DRAIN_ATTR_LAST_WEIGHT]);
	srv->drain.then = kern_get_u32(tb[L4LB_DRAIN_ATTR_THEN]);
	srv->drain.timed = tb[L4LB_DRAIN_ATTR_LEFT];
	if (srv->drain.timed)
		srv->drain.left = (uint32_t)
			((nla_get_u64(tb[L4LB_DRAIN_ATTR_LEFT]) + 999) / 1000);
}

static bool any_drains(const struct service_list *list)
{
	size_t i, j;

	for (i = 0; i < list->n; i++) {
		if (list->v[i].policy.value[L4LB_POLICY_ATTR_RAMP])
			return true;
		for (j = 0; j < list->v[i].nservers; j++)
			if (!list->v[i].servers[j].weight)
				return true;
	}
	return false;
}

/* One request, and none if all have a weight and no service has slow starts. */
int kern_drains(struct service_list *list)
{
	struct nl_msg *msg;
	int err;

	if (!any_drains(list) || !kern_has_drains())
		return 0;
	msg = wire_own_request(L4LB_CMD_GET_DRAIN, NLM_F_DUMP);
	err = msg ? wire_call(msg, take_drain, list) : -ENOMEM;
	/* An older module does not know the command. */
	return err == -EOPNOTSUPP ? 0 : err;
}

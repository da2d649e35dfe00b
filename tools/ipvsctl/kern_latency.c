// SPDX-License-Identifier: GPL-2.0
/* L4LB_CMD_GET_LATENCY. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern_latency.h"
#include "kern_msg.h"
#include "latency.h"
#include "model.h"
#include "wire.h"
#include "../../kernel/l4lb.h"

struct taking {
	struct service_list *list;
	const struct service *svc;	/* of the message before */
	size_t next;		/* its real server that probably comes next */
	bool incomplete;	/* for lack of memory */
};

static uint64_t get_u64(struct nlattr *attr)
{
	return attr ? nla_get_u64(attr) : 0;
}

static void take_kind(struct nlattr *nest, struct latency *l)
{
	struct nlattr *tb[L4LB_LATENCY_KIND_ATTR_MAX + 1], *buckets;

	if (!nest ||
	    nla_parse_nested(tb, L4LB_LATENCY_KIND_ATTR_MAX, nest, NULL) < 0)
		return;
	buckets = tb[L4LB_LATENCY_KIND_ATTR_BUCKETS];
	if (buckets)
		nla_memcpy(l->bucket, buckets, sizeof(l->bucket));
	l->sum = get_u64(tb[L4LB_LATENCY_KIND_ATTR_SUM]);
	l->refused = get_u64(tb[L4LB_LATENCY_KIND_ATTR_REFUSED]);
	l->unanswered = get_u64(tb[L4LB_LATENCY_KIND_ATTR_UNANSWERED]);
}

/* The kernel tells them in the order in which it lists them: most are found at once. */
static struct server *find(struct taking *taking, const struct service *svc,
			   const struct server *name)
{
	struct server *srv;

	if (svc != taking->svc)
		taking->next = 0;
	taking->svc = svc;
	srv = taking->next < svc->nservers ? &svc->servers[taking->next] : NULL;
	if (!srv || server_cmp(srv, name))
		srv = server_find(svc, name->af, &name->addr, name->port);
	if (srv)
		taking->next = (size_t)(srv - svc->servers) + 1;
	return srv;
}

static struct server *named_server(struct taking *taking, struct nlattr *service,
				   struct nlattr **tb)
{
	struct nlattr *key[SVC_ATTR_MAX + 1];
	struct server name = { 0 };
	struct service named = { 0 }, *svc;

	if (nla_parse_nested(key, SVC_ATTR_MAX, service, NULL) < 0 ||
	    !tb[L4LB_LATENCY_ATTR_ADDR])
		return NULL;
	kern_get_service(key, &named);
	svc = service_find(taking->list, &named.id);
	if (!svc || !service_measures(svc))
		return NULL;
	nla_memcpy(name.addr.b, tb[L4LB_LATENCY_ATTR_ADDR], sizeof(name.addr.b));
	name.af = kern_get_u16(tb[L4LB_LATENCY_ATTR_AF]);
	name.port = ntohs(kern_get_u16(tb[L4LB_LATENCY_ATTR_PORT]));
	return find(taking, svc, &name);
}

static void take_latency(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1], *tb[L4LB_LATENCY_ATTR_MAX + 1];
	struct taking *taking = arg;
	struct server *srv;

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0 ||
	    !top[L4LB_ATTR_SERVICE] || !top[L4LB_ATTR_LATENCY] ||
	    nla_parse_nested(tb, L4LB_LATENCY_ATTR_MAX, top[L4LB_ATTR_LATENCY],
			     NULL) < 0)
		return;
	srv = named_server(taking, top[L4LB_ATTR_SERVICE], tb);
	if (!srv || srv->latency)
		return;
	srv->latency = calloc(1, sizeof(*srv->latency));
	taking->incomplete |= !srv->latency;
	if (!srv->latency)
		return;
	take_kind(tb[L4LB_LATENCY_ATTR_HANDSHAKE], &srv->latency->handshake);
	take_kind(tb[L4LB_LATENCY_ATTR_ANSWER], &srv->latency->answer);
}

static bool any_measures(const struct service_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (service_measures(&list->v[i]))
			return true;
	return false;
}

int kern_latency(struct service_list *list, const struct svc_id *only)
{
	struct taking taking = { .list = list };
	struct nlattr *nest;
	struct nl_msg *msg;
	int err;

	if (!any_measures(list) || !wire_has_own())
		return 0;
	msg = wire_own_request(L4LB_CMD_GET_LATENCY, NLM_F_DUMP);
	if (!msg)
		return -ENOMEM;
	if (only) {
		nest = nla_nest_start(msg, L4LB_ATTR_SERVICE);
		kern_put_ident(msg, only);
		nla_nest_end(msg, nest);
	}
	err = wire_call(msg, take_latency, &taking);
	return !err && taking.incomplete ? -ENOMEM : err;
}

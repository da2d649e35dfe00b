// SPDX-License-Identifier: GPL-2.0
/* L4LB_CMD_GET_SHADOW. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern_msg.h"
#include "kern_shadow.h"
#include "wire.h"
#include "../../kernel/l4lb.h"

static uint64_t get_u64(struct nlattr *attr)
{
	return attr ? nla_get_u64(attr) : 0;
}

static void take_loads(struct nlattr **tb, struct shadow_server *srv)
{
	srv->shadow = (struct shadow_load){
		get_u64(tb[L4LB_SHADOW_SERVER_ATTR_CONNS]),
		kern_get_u32(tb[L4LB_SHADOW_SERVER_ATTR_ACTIVE_CONNS]),
		kern_get_u32(tb[L4LB_SHADOW_SERVER_ATTR_INACT_CONNS]),
	};
	srv->real = (struct shadow_load){
		get_u64(tb[L4LB_SHADOW_SERVER_ATTR_REAL_CONNS]),
		kern_get_u32(tb[L4LB_SHADOW_SERVER_ATTR_REAL_ACTIVE_CONNS]),
		kern_get_u32(tb[L4LB_SHADOW_SERVER_ATTR_REAL_INACT_CONNS]),
	};
}

static void take_server(struct nlattr *nest, struct shadow *shadow)
{
	struct nlattr *tb[L4LB_SHADOW_SERVER_ATTR_MAX + 1];
	struct shadow_server *more, *srv;

	if (nla_parse_nested(tb, L4LB_SHADOW_SERVER_ATTR_MAX, nest, NULL) < 0 ||
	    !tb[L4LB_SHADOW_SERVER_ATTR_ADDR] || shadow->incomplete)
		return;
	/* Twice as many at each power of 2. */
	if (!(shadow->nservers & (shadow->nservers + 1))) {
		more = reallocarray(shadow->servers, 2 * shadow->nservers + 2,
				    sizeof(*more));
		shadow->incomplete = !more;
		if (!more)
			return;
		shadow->servers = more;
	}
	srv = &shadow->servers[shadow->nservers++];
	memset(srv, 0, sizeof(*srv));
	nla_memcpy(srv->addr.b, tb[L4LB_SHADOW_SERVER_ATTR_ADDR], sizeof(srv->addr.b));
	srv->af = kern_get_u16(tb[L4LB_SHADOW_SERVER_ATTR_AF]);
	srv->port = ntohs(kern_get_u16(tb[L4LB_SHADOW_SERVER_ATTR_PORT]));
	srv->weight = kern_get_u32(tb[L4LB_SHADOW_SERVER_ATTR_WEIGHT]);
	take_loads(tb, srv);
}

/* There is one attribute for each, of the same type. */
static void take_counts(struct nlattr *stats, struct sched_info *sched)
{
	struct nlattr *nest;
	int left;

	nla_for_each_nested(nest, stats, left)
		if (nla_type(nest) == L4LB_SHADOW_ATTR_OPTION &&
		    sched->n < L4LB_OPTIONS_MAX)
			l4lb_take_option(nest, &sched->options[sched->n++]);
}

static void take_shadow(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1], *tb[L4LB_SHADOW_ATTR_MAX + 1];
	struct shadow *shadow = arg;

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0 ||
	    !top[L4LB_ATTR_SHADOW_STATS] ||
	    nla_parse_nested(tb, L4LB_SHADOW_ATTR_MAX, top[L4LB_ATTR_SHADOW_STATS],
			     NULL) < 0)
		return;
	if (tb[L4LB_SHADOW_ATTR_SERVER]) {
		take_server(tb[L4LB_SHADOW_ATTR_SERVER], shadow);
		return;
	}
	if (!tb[L4LB_SHADOW_ATTR_SCHEDULER])
		return;
	nla_strlcpy(shadow->scheduler, tb[L4LB_SHADOW_ATTR_SCHEDULER],
		    sizeof(shadow->scheduler));
	shadow->age = get_u64(tb[L4LB_SHADOW_ATTR_AGE]);
	shadow->choices = get_u64(tb[L4LB_SHADOW_ATTR_SEEN]);
	shadow->agreed = get_u64(tb[L4LB_SHADOW_ATTR_AGREED]);
	shadow->refused = get_u64(tb[L4LB_SHADOW_ATTR_REFUSED]);
	take_counts(top[L4LB_ATTR_SHADOW_STATS], &shadow->sched);
}

static int ask_shadow(const struct svc_id *id, struct shadow *shadow)
{
	struct nlattr *nest;
	struct nl_msg *msg;

	msg = wire_own_request(L4LB_CMD_GET_SHADOW, NLM_F_DUMP);
	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, L4LB_ATTR_SERVICE);
	kern_put_ident(msg, id);
	nla_nest_end(msg, nest);
	return wire_call(msg, take_shadow, shadow);
}

int kern_shadow(const struct svc_id *id, struct shadow *shadow)
{
	int err = -EINTR, i;

	memset(shadow, 0, sizeof(*shadow));
	if (!wire_has_own())
		return -EOPNOTSUPP;
	/* It is interrupted whenever the configuration changes meanwhile. */
	for (i = 0; i < DUMP_TRIES && err == -EINTR; i++) {
		shadow_free(shadow);
		memset(shadow, 0, sizeof(*shadow));
		err = ask_shadow(id, shadow);
	}
	return !err && shadow->incomplete ? -ENOMEM : err;
}

void shadow_free(struct shadow *shadow)
{
	free(shadow->servers);
	shadow->servers = NULL;
}

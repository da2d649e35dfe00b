// SPDX-License-Identifier: GPL-2.0
/* L4LB_CMD_TRY_SCHEDULER. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern_msg.h"
#include "kern_trial.h"
#include "wire.h"
#include "../../kernel/l4lb.h"

static void take_server(struct nlattr *nest, struct trial *trial)
{
	struct nlattr *tb[L4LB_TRIAL_SERVER_ATTR_MAX + 1];
	struct trial_server *more, *srv;

	if (nla_parse_nested(tb, L4LB_TRIAL_SERVER_ATTR_MAX, nest, NULL) < 0 ||
	    !tb[L4LB_TRIAL_SERVER_ATTR_ADDR] || trial->incomplete)
		return;
	/* Twice as many at each power of 2. */
	if (!(trial->nservers & (trial->nservers + 1))) {
		more = reallocarray(trial->servers, 2 * trial->nservers + 2,
				    sizeof(*more));
		trial->incomplete = !more;
		if (!more)
			return;
		trial->servers = more;
	}
	srv = &trial->servers[trial->nservers++];
	memset(srv, 0, sizeof(*srv));
	nla_memcpy(srv->addr.b, tb[L4LB_TRIAL_SERVER_ATTR_ADDR], sizeof(srv->addr.b));
	srv->af = kern_get_u16(tb[L4LB_TRIAL_SERVER_ATTR_AF]);
	srv->port = ntohs(kern_get_u16(tb[L4LB_TRIAL_SERVER_ATTR_PORT]));
	srv->weight = kern_get_u32(tb[L4LB_TRIAL_SERVER_ATTR_WEIGHT]);
	srv->chosen = kern_get_u32(tb[L4LB_TRIAL_SERVER_ATTR_CHOSEN]);
}

static void take_trial(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1], *tb[L4LB_TRIAL_ATTR_MAX + 1];
	struct trial *trial = arg;

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0 ||
	    !top[L4LB_ATTR_TRIAL] ||
	    nla_parse_nested(tb, L4LB_TRIAL_ATTR_MAX, top[L4LB_ATTR_TRIAL], NULL) < 0)
		return;
	if (tb[L4LB_TRIAL_ATTR_SERVER]) {
		take_server(tb[L4LB_TRIAL_ATTR_SERVER], trial);
		return;
	}
	if (!tb[L4LB_TRIAL_ATTR_FLOWS])
		return;
	trial->flows = kern_get_u32(tb[L4LB_TRIAL_ATTR_FLOWS]);
	trial->refused = kern_get_u32(tb[L4LB_TRIAL_ATTR_REFUSED]);
	trial->live = kern_get_u32(tb[L4LB_TRIAL_ATTR_CLIENTS]);
	trial->compares = tb[L4LB_TRIAL_ATTR_MOVED];
	trial->lost = kern_get_u32(tb[L4LB_TRIAL_ATTR_LOST]);
	trial->moved = kern_get_u32(tb[L4LB_TRIAL_ATTR_MOVED]);
	trial->cost_50 = kern_get_u32(tb[L4LB_TRIAL_ATTR_COST_50]);
	trial->cost_99 = kern_get_u32(tb[L4LB_TRIAL_ATTR_COST_99]);
}

static void put_without(struct nl_msg *msg, const struct srv_id *without)
{
	struct nlattr *nest = nla_nest_start(msg, L4LB_TRIAL_ATTR_WITHOUT);

	nla_put(msg, L4LB_TRIAL_SERVER_ATTR_ADDR, sizeof(without->addr),
		&without->addr);
	nla_put_u16(msg, L4LB_TRIAL_SERVER_ATTR_PORT, htons(without->port));
	nla_put_u16(msg, L4LB_TRIAL_SERVER_ATTR_AF, without->af);
	nla_nest_end(msg, nest);
}

static struct nl_msg *request(const struct svc_id *id, const char *scheduler,
			      const struct trial_flows *flows)
{
	struct nl_msg *msg = wire_own_request(L4LB_CMD_TRY_SCHEDULER, NLM_F_DUMP);
	struct nlattr *nest;

	if (!msg)
		return NULL;
	nest = nla_nest_start(msg, L4LB_ATTR_SERVICE);
	kern_put_ident(msg, id);
	nla_nest_end(msg, nest);
	nest = nla_nest_start(msg, L4LB_ATTR_TRIAL);
	nla_put_string(msg, L4LB_TRIAL_ATTR_SCHEDULER, scheduler);
	nla_put_u32(msg, L4LB_TRIAL_ATTR_FLOWS, flows->flows);
	nla_put_u32(msg, L4LB_TRIAL_ATTR_CLIENTS, flows->clients);
	nla_put_u32(msg, L4LB_TRIAL_ATTR_HOLD, flows->hold);
	nla_put_u64(msg, L4LB_TRIAL_ATTR_SEED, flows->seed);
	if (flows->live)
		nla_put_flag(msg, L4LB_TRIAL_ATTR_LIVE);
	if (flows->lacks)
		put_without(msg, &flows->without);
	nla_nest_end(msg, nest);
	return msg;
}

int kern_trial(const struct svc_id *id, const char *scheduler,
	       const struct trial_flows *flows, struct trial *trial)
{
	struct nl_msg *msg;
	int err;

	memset(trial, 0, sizeof(*trial));
	snprintf(trial->scheduler, sizeof(trial->scheduler), "%s", scheduler);
	if (!wire_has_own())
		return -EOPNOTSUPP;
	msg = request(id, scheduler, flows);
	if (!msg)
		return -ENOMEM;
	/* The trial is made, and ends by itself, while the second answer is read. */
	err = wire_call(msg, take_trial, trial);
	return !err && trial->incomplete ? -ENOMEM : err;
}

void trial_free(struct trial *trial)
{
	free(trial->servers);
	trial->servers = NULL;
}

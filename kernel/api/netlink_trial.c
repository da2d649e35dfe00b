// SPDX-License-Identifier: GPL-2.0
/*
 * L4LB_CMD_TRY_SCHEDULER: what a scheduler would choose.
 *
 * The real servers are copied when the dump begins, the trial is made for its second
 * buffer, and the rest lists what came of it.  A namespace has one at a time: each
 * has memory for all real servers of a service, until it is over.
 */
#include "api/netlink_trial.h"

#include <linux/slab.h>
#include <net/netlink.h>

#include "api/netlink_l4lb.h"
#include "api/netlink_parse.h"
#include "api/netlink_shadow.h"
#include "conn/clients.h"
#include "service/registry.h"
#include "service/trial.h"

static const struct nla_policy server_policy[] = {
	[L4LB_TRIAL_SERVER_ATTR_ADDR] = NLA_POLICY_RANGE(NLA_BINARY,
							 sizeof(struct in_addr),
							 sizeof(struct in6_addr)),
	[L4LB_TRIAL_SERVER_ATTR_PORT] = { .type = NLA_U16 },
	[L4LB_TRIAL_SERVER_ATTR_AF] = { .type = NLA_U16 },
};

const struct nla_policy l4lb_nl_trial_policy[] = {
	[L4LB_TRIAL_ATTR_SCHEDULER] = { .type = NLA_NUL_STRING,
					.len = L4LB_NAME_LEN - 1 },
	[L4LB_TRIAL_ATTR_FLOWS] = { .type = NLA_U32 },
	[L4LB_TRIAL_ATTR_CLIENTS] = { .type = NLA_U32 },
	[L4LB_TRIAL_ATTR_HOLD] = { .type = NLA_U32 },
	[L4LB_TRIAL_ATTR_SEED] = { .type = NLA_U64 },
	[L4LB_TRIAL_ATTR_WITHOUT] = NLA_POLICY_NESTED(server_policy),
	[L4LB_TRIAL_ATTR_LIVE] = { .type = NLA_FLAG },
};

enum {
	TRIAL_ATTR_MAX	= ARRAY_SIZE(l4lb_nl_trial_policy) - 1,
	SERVER_ATTR_MAX	= ARRAY_SIZE(server_policy) - 1,
};

/**
 * struct dump - a trial and how much of it has been listed
 * @ln: its namespace
 * @trial: what is to be done and what came of it
 * @maps: the scheduler looks at nothing but flow and servers
 * @ready: the trial can be made; it has a reference on the scheduler, and is the
 *	namespace's only one
 * @named: the first reply has been sent
 * @at: the next real server to be listed
 */
struct dump {
	struct l4lb_net		*ln;
	struct l4lb_trial	trial;
	bool			maps;
	bool			ready;
	bool			named;
	unsigned int		at;
};

/* ---- requests ---- */

static int parse_number(u32 *number, const struct nlattr *attr, u32 least,
			struct netlink_ext_ack *extack)
{
	*number = attr ? nla_get_u32(attr) : 0;
	if (*number >= least && *number <= L4LB_TRIAL_FLOWS_MAX)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "trial: FLOWS must be 1 to 4194304, CLIENTS and HOLD at most that");
	return -EINVAL;
}

static int parse_without(struct l4lb_trial *trial, u16 af,
			 const struct nlattr *nest,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[SERVER_ATTR_MAX + 1];
	struct l4lb_nl_server_name name;
	int err;

	if (!nest)
		return 0;
	err = nla_parse_nested(tb, SERVER_ATTR_MAX, nest, server_policy, extack);
	if (err)
		return err;
	name = (struct l4lb_nl_server_name) {
		.nest	= nest,
		.addr	= tb[L4LB_TRIAL_SERVER_ATTR_ADDR],
		.port	= tb[L4LB_TRIAL_SERVER_ATTR_PORT],
		.af	= tb[L4LB_TRIAL_SERVER_ATTR_AF],
	};
	trial->lacks = true;
	return l4lb_nl_parse_server_name(&trial->without, af, &name, extack);
}

static int parse_live(struct l4lb_trial *trial, const struct nlattr *live,
		      struct netlink_ext_ack *extack)
{
	trial->lives = live;
	if (!live || !trial->clients)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, live,
			    "trial: LIVE clients are those that there are: leave CLIENTS out");
	return -EINVAL;
}

static int parse_trial(struct l4lb_trial *trial, u16 af, struct nlattr **tb,
		       struct netlink_ext_ack *extack)
{
	if (tb[L4LB_TRIAL_ATTR_SEED])
		trial->seed = nla_get_u64(tb[L4LB_TRIAL_ATTR_SEED]);
	return parse_number(&trial->flows, tb[L4LB_TRIAL_ATTR_FLOWS], 1, extack) ?:
	       parse_number(&trial->clients, tb[L4LB_TRIAL_ATTR_CLIENTS], 0,
			    extack) ?:
	       parse_live(trial, tb[L4LB_TRIAL_ATTR_LIVE], extack) ?:
	       parse_number(&trial->hold, tb[L4LB_TRIAL_ATTR_HOLD], 0, extack) ?:
	       parse_without(trial, af, tb[L4LB_TRIAL_ATTR_WITHOUT], extack);
}

/* ---- the trial ---- */

static int prepare(struct dump *dump, const struct l4lb_svc_key *key,
		   struct netlink_callback *cb)
{
	struct l4lb_net *ln = dump->ln;
	struct l4lb_service *svc;
	int err = -ESRCH;

	mutex_lock(&ln->lock);
	svc = l4lb_service_find(ln, key);
	if (svc)
		err = l4lb_trial_prepare(&dump->trial, svc, cb->extack);
	else
		NL_SET_ERR_MSG(cb->extack,
			       "there is no such service: add it, with family IPVS");
	mutex_unlock(&ln->lock);
	return err;
}

/* Gives everything back but what is to be listed. */
static void end(struct dump *dump)
{
	if (!dump->ready)
		return;
	dump->ready = false;
	l4lb_trial_end(&dump->trial);
	l4lb_sched_put(dump->trial.ops);
	WRITE_ONCE(dump->ln->trying, 0);
}

static int make_ready(struct dump *dump, const struct l4lb_svc_key *key,
		      struct netlink_callback *cb)
{
	int err;

	if (cmpxchg(&dump->ln->trying, 0, 1)) {
		NL_SET_ERR_MSG(cb->extack,
			       "another trial is under way: try again when it is over");
		l4lb_sched_put(dump->trial.ops);
		return -EBUSY;
	}
	dump->ready = true;
	err = prepare(dump, key, cb);
	if (err)
		end(dump);
	return err;
}

static int parse_request(struct dump *dump, struct l4lb_svc_key *key,
			 struct netlink_callback *cb)
{
	const struct nlattr *nest = l4lb_dump_attrs(cb)[L4LB_ATTR_TRIAL];
	struct nlattr *tb[TRIAL_ATTR_MAX + 1];
	int err = l4lb_nl_parse_service_name(key, l4lb_dump_attrs(cb), cb->extack);

	if (err)
		return err;
	if (!nest) {
		NL_SET_ERR_MSG(cb->extack, "attribute TRIAL is missing");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, TRIAL_ATTR_MAX, nest, l4lb_nl_trial_policy,
			       cb->extack) ?:
	      parse_trial(&dump->trial, key->af, tb, cb->extack);
	if (err)
		return err;
	if (!tb[L4LB_TRIAL_ATTR_SCHEDULER]) {
		NL_SET_ERR_MSG(cb->extack, "trial: SCHEDULER is missing");
		return -EINVAL;
	}
	dump->trial.ops = l4lb_nl_get_scheduler(tb[L4LB_TRIAL_ATTR_SCHEDULER],
						cb->extack);
	if (!dump->trial.ops)
		return -ENOENT;
	dump->maps = dump->trial.ops->maps;
	return 0;
}

int l4lb_nl_start_trial(struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(cb->skb, cb->extack);
	struct l4lb_svc_key key;
	struct dump *dump;
	int err;

	if (!ln)
		return -EAGAIN;
	dump = kzalloc(sizeof(*dump), GFP_KERNEL_ACCOUNT);
	if (!dump)
		return -ENOMEM;
	dump->ln = ln;
	err = parse_request(dump, &key, cb) ?: make_ready(dump, &key, cb);
	if (err) {
		l4lb_trial_free(&dump->trial);
		kfree(dump);
		return err;
	}
	cb->args[0] = (long)dump;
	return 0;
}

int l4lb_nl_done_trial(struct netlink_callback *cb)
{
	struct dump *dump = (struct dump *)cb->args[0];

	end(dump);
	l4lb_trial_free(&dump->trial);
	kfree(dump);
	return 0;
}

/* ---- replies ---- */

/* At once, so that the trial itself is made while the reader waits for more. */
static int fill_name(struct sk_buff *skb, const struct dump *dump)
{
	return nla_put_string(skb, L4LB_TRIAL_ATTR_SCHEDULER, dump->trial.ops->name);
}

static int fill_total(struct sk_buff *skb, const struct dump *dump)
{
	const struct l4lb_trial *trial = &dump->trial;

	if (nla_put_u32(skb, L4LB_TRIAL_ATTR_FLOWS, trial->flows) ||
	    nla_put_u32(skb, L4LB_TRIAL_ATTR_REFUSED, trial->refused) ||
	    nla_put_u32(skb, L4LB_TRIAL_ATTR_COST_50,
			l4lb_trial_cost(trial, 50)) ||
	    nla_put_u32(skb, L4LB_TRIAL_ATTR_COST_99,
			l4lb_trial_cost(trial, 99)))
		return -EMSGSIZE;
	if (trial->lives &&
	    nla_put_u32(skb, L4LB_TRIAL_ATTR_CLIENTS, trial->n_live))
		return -EMSGSIZE;
	if (!trial->lacks)
		return 0;
	/* Others choose anew each time: that they move tells nothing. */
	if (dump->maps && nla_put_u32(skb, L4LB_TRIAL_ATTR_MOVED, trial->moved))
		return -EMSGSIZE;
	return nla_put_u32(skb, L4LB_TRIAL_ATTR_LOST, trial->lost);
}

static int fill_server(struct sk_buff *skb, const struct dump *dump)
{
	const struct l4lb_trial_server *server = &dump->trial.server[dump->at];
	struct nlattr *nest = nla_nest_start(skb, L4LB_TRIAL_ATTR_SERVER);

	if (!nest ||
	    nla_put(skb, L4LB_TRIAL_SERVER_ATTR_ADDR, sizeof(server->addr),
		    &server->addr) ||
	    nla_put_be16(skb, L4LB_TRIAL_SERVER_ATTR_PORT, server->port) ||
	    nla_put_u16(skb, L4LB_TRIAL_SERVER_ATTR_AF, server->af) ||
	    nla_put_u32(skb, L4LB_TRIAL_SERVER_ATTR_WEIGHT, server->weight) ||
	    nla_put_u32(skb, L4LB_TRIAL_SERVER_ATTR_CHOSEN, server->chosen))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_reply(struct sk_buff *skb, const struct netlink_callback *cb,
		     int (*fill)(struct sk_buff *skb, const struct dump *dump))
{
	const struct dump *dump = (struct dump *)cb->args[0];
	struct nlattr *nest;
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &l4lb_ext_family, NLM_F_MULTI, L4LB_CMD_TRY_SCHEDULER);
	if (!hdr)
		return -EMSGSIZE;
	nest = nla_nest_start(skb, L4LB_ATTR_TRIAL);
	if (!nest || fill(skb, dump)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	genlmsg_end(skb, hdr);
	return 0;
}

static int make_trial(struct dump *dump)
{
	struct l4lb_trial *trial = &dump->trial;
	int err = trial->lives ? l4lb_conn_clients(dump->ln, trial) : 0;

	return err ?: l4lb_trial_run(trial);
}

/* Called for each buffer: first when the request is sent, under a lock that all of
 * generic netlink waits for; then when the reader has taken the buffer before.
 */
int l4lb_nl_dump_trial(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump *dump = (struct dump *)cb->args[0];
	int err;

	if (!dump->named) {
		dump->named = true;
		return put_reply(skb, cb, fill_name) ?: skb->len;
	}
	if (dump->ready) {
		err = make_trial(dump);
		end(dump);
		if (err)
			return err;
		err = put_reply(skb, cb, fill_total);
		if (err)
			return err;
	}
	while (dump->at < dump->trial.n && !put_reply(skb, cb, fill_server))
		dump->at++;
	return skb->len;
}

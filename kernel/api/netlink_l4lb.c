// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink family "L4LB": schedulers and their options, services'
 * policies, all services at once (netlink_batch.c, netlink_list.c), and
 * connections (netlink_conns.c).  l4lb.h describes the messages.
 *
 * As in family IPVS, commands take the configuration mutex of the caller's
 * namespace and do not load modules under it.  Unlike there, everything is
 * checked strictly: no old client relies on lax checks.
 */
#include "api/netlink_l4lb.h"

#include <net/netlink.h>

#include "api/netlink_batch.h"
#include "api/netlink_conns.h"
#include "api/netlink_drain.h"
#include "api/netlink_event.h"
#include "api/netlink_fill.h"
#include "api/netlink_handover.h"
#include "api/netlink_latency.h"
#include "api/netlink_list.h"
#include "api/netlink_log.h"
#include "api/netlink_option.h"
#include "api/netlink_parse.h"
#include "api/netlink_peer.h"
#include "api/netlink_policy.h"
#include "api/netlink_range.h"
#include "api/netlink_server.h"
#include "api/netlink_servers.h"
#include "api/netlink_shadow.h"
#include "api/netlink_trial.h"
#include "config/policy.h"
#include "service/registry.h"
#include "service/sched_default.h"
#include "service/shadow.h"
#include "sync/hello.h"

static_assert(L4LB_NAME_LEN == L4LB_SCHED_NAME_MAX);
static_assert(L4LB_WHAT_LEN == L4LB_SCHED_WHAT_MAX);
static_assert(L4LB_OPTIONS_MAX == L4LB_SCHED_OPTIONS_MAX);
static_assert(L4LB_PATH_LEN == L4LB_SCHED_PATH_MAX);

/* ---- requests ---- */

const struct nla_policy l4lb_nl_key_policy[L4LB_SVC_ATTR_RANGE + 1] = {
	[IPVS_SVC_ATTR_AF]	= { .type = NLA_U16 },
	[IPVS_SVC_ATTR_PROTOCOL] = { .type = NLA_U16 },
	[IPVS_SVC_ATTR_ADDR]	= NLA_POLICY_RANGE(NLA_BINARY,
						   sizeof(struct in_addr),
						   sizeof(struct in6_addr)),
	[IPVS_SVC_ATTR_PORT]	= { .type = NLA_U16 },
	[IPVS_SVC_ATTR_FWMARK]	= NLA_POLICY_MIN(NLA_U32, 1),
	[L4LB_SVC_ATTR_RANGE]	= { .type = NLA_NESTED },
};

static const struct nla_policy name_policy[] = {
	[L4LB_SCHED_ATTR_NAME]	= { .type = NLA_NUL_STRING,
				    .len = L4LB_NAME_LEN - 1 },
};

static const struct nla_policy scheduler_request[] = {
	[L4LB_ATTR_SCHEDULER]	= NLA_POLICY_NESTED(name_policy),
};

static const struct nla_policy service_request[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(l4lb_nl_key_policy),
};

static const struct nla_policy options_request[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(l4lb_nl_key_policy),
	[L4LB_ATTR_OPTIONS]	= NLA_POLICY_NESTED_ARRAY(l4lb_nl_option_policy),
};

static const struct nla_policy set_request[] = {
	[L4LB_ATTR_ENTRY]	= { .type = NLA_NESTED },
	[L4LB_ATTR_MODE]	= NLA_POLICY_MAX(NLA_U32, L4LB_SET_MODE_MAX),
	[L4LB_ATTR_RANGES]	= { .type = NLA_FLAG },
	[L4LB_ATTR_TIMEOUTS]	= { .type = NLA_NESTED },
};

static const struct nla_policy server_request[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(l4lb_nl_key_policy),
	[L4LB_ATTR_DESTS]	= { .type = NLA_NESTED },
	[L4LB_ATTR_MODE]	= NLA_POLICY_MAX(NLA_U32, L4LB_SET_MODE_MAX),
	[L4LB_ATTR_REMOVE]	= { .type = NLA_FLAG },
};

static const struct nla_policy list_request[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(l4lb_nl_key_policy),
	[L4LB_ATTR_LIVE]	= { .type = NLA_FLAG },
	[L4LB_ATTR_RANGES]	= { .type = NLA_FLAG },
};

static const struct nla_policy conns_request[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(l4lb_nl_key_policy),
	[L4LB_ATTR_CONN]	= NLA_POLICY_NESTED(l4lb_nl_conn_policy),
};

static const struct nla_policy kill_request[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(l4lb_nl_key_policy),
	[L4LB_ATTR_CONN]	= NLA_POLICY_NESTED(l4lb_nl_conn_policy),
	[L4LB_ATTR_RESET]	= { .type = NLA_FLAG },
};

static const struct nla_policy policy_request[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(l4lb_nl_key_policy),
	[L4LB_ATTR_POLICY]	= { .type = NLA_NESTED },
	[L4LB_ATTR_OWNER]	= { .type = NLA_NUL_STRING,
				    .len = L4LB_OWNER_LEN - 1 },
	[L4LB_ATTR_PROTECTED]	= NLA_POLICY_MAX(NLA_U8, 1),
	[L4LB_ATTR_SHADOW]	= { .type = NLA_NUL_STRING,
				    .len = L4LB_NAME_LEN - 1 },
};

/* Without attributes. */
static const struct nla_policy no_request[] = {
	[L4LB_ATTR_SERVICE]	= { .type = NLA_REJECT },
};

static const struct nla_policy sync_request[] = {
	[L4LB_ATTR_SYNC]	= NLA_POLICY_NESTED(l4lb_nl_sync_policy),
};

static const struct nla_policy peer_request[] = {
	[L4LB_ATTR_PEER]	= NLA_POLICY_NESTED(l4lb_nl_peer_policy),
};

static const struct nla_policy resync_request[] = {
	[L4LB_ATTR_PEER]	= NLA_POLICY_NESTED(l4lb_nl_peer_policy),
	[L4LB_ATTR_PUSH]	= { .type = NLA_FLAG },
};

static const struct nla_policy drain_request[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(l4lb_nl_key_policy),
	[L4LB_ATTR_DRAIN]	= NLA_POLICY_NESTED(l4lb_nl_drain_policy),
};

static const struct nla_policy trial_request[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(l4lb_nl_key_policy),
	[L4LB_ATTR_TRIAL]	= NLA_POLICY_NESTED(l4lb_nl_trial_policy),
};

static const struct nla_policy handover_request[] = {
	[L4LB_ATTR_HANDOVER]	= NLA_POLICY_NESTED(l4lb_nl_handover_policy),
};

enum {
	KEY_ATTR_MAX		= ARRAY_SIZE(l4lb_nl_key_policy) - 1,
	NAME_ATTR_MAX		= ARRAY_SIZE(name_policy) - 1,
};

int l4lb_nl_parse_ext_key(struct l4lb_svc_key *key, struct nlattr **tb,
			  const struct nlattr *nest,
			  struct netlink_ext_ack *extack)
{
	int err;

	if (tb[L4LB_SVC_ATTR_RANGE])
		return l4lb_nl_parse_range(key, tb, extack);
	err = l4lb_nl_parse_key(key, tb, nest, extack);
	if (err)
		return err;
	if (key->fwmark && (tb[IPVS_SVC_ATTR_PROTOCOL] ||
			    tb[IPVS_SVC_ATTR_ADDR] || tb[IPVS_SVC_ATTR_PORT])) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "service: name it by FWMARK or by PROTOCOL, ADDR and PORT, not by both");
		return -EINVAL;
	}
	if (!key->fwmark &&
	    nla_len(tb[IPVS_SVC_ATTR_ADDR]) != sizeof(key->addr) &&
	    nla_len(tb[IPVS_SVC_ATTR_ADDR]) != (key->af == AF_INET ? 4 : 16)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[IPVS_SVC_ATTR_ADDR],
				    "service: the address must have 16 bytes, or 4 for IPv4");
		return -EINVAL;
	}
	return 0;
}

int l4lb_nl_parse_service_name(struct l4lb_svc_key *key, struct nlattr **attrs,
			       struct netlink_ext_ack *extack)
{
	const struct nlattr *nest = attrs[L4LB_ATTR_SERVICE];
	struct nlattr *tb[KEY_ATTR_MAX + 1];
	int err;

	memset(key, 0, sizeof(*key));
	if (!nest) {
		NL_SET_ERR_MSG(extack, "attribute SERVICE is missing");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, KEY_ATTR_MAX, nest, l4lb_nl_key_policy,
			       extack);
	return err ?: l4lb_nl_parse_ext_key(key, tb, nest, extack);
}

static int parse_key(struct l4lb_svc_key *key, struct genl_info *info)
{
	return l4lb_nl_parse_service_name(key, info->attrs, info->extack);
}

/* The service a request names, or NULL with a sentence.  Configuration mutex
 * held.
 */
static struct l4lb_service *find_service(struct l4lb_net *ln,
					 const struct l4lb_svc_key *key,
					 struct genl_info *info)
{
	struct l4lb_service *svc = l4lb_service_find(ln, key);

	if (!svc)
		NL_SET_ERR_MSG_ATTR(info->extack,
				    info->attrs[L4LB_ATTR_SERVICE],
				    "there is no such service: add it, with family IPVS");
	return svc;
}

/* Merge the request's options into the present ones.  Configuration mutex held.
 */
static int parse_options(struct l4lb_service *svc,
			 struct l4lb_sched_values *values, unsigned long *seen,
			 struct genl_info *info)
{
	const struct l4lb_sched_ops *ops = l4lb_service_sched(svc);
	const struct nlattr *options = info->attrs[L4LB_ATTR_OPTIONS];
	const struct nlattr *option;
	int left, err;

	if (!options || !nla_len(options)) {
		NL_SET_ERR_MSG(info->extack,
			       "attribute OPTIONS is missing or empty");
		return -EINVAL;
	}
	if (!ops || !ops->n_options)
		return l4lb_nl_unknown_option(ops, options, info->extack);
	memcpy(values->option, l4lb_service_options(svc),
	       ops->n_options * sizeof(*values->option));
	nla_for_each_nested(option, options, left) {
		err = l4lb_nl_parse_option(ops, values, seen, option,
					   info->extack);
		if (err)
			return err;
	}
	return 0;
}

/* ---- replies ---- */

/* Of option @i.  @svc: a service with this scheduler, or NULL. */
static int fill_option(struct sk_buff *skb, const struct l4lb_sched_ops *ops,
		       unsigned int i, const struct l4lb_service *svc)
{
	u32 def = svc ? l4lb_sched_default(svc->ln, ops, i) : ops->options[i].def;
	const struct l4lb_sched_option *o = &ops->options[i];
	struct nlattr *nest = nla_nest_start(skb, 1);

	if (!nest ||
	    nla_put_string(skb, L4LB_OPTION_ATTR_NAME, o->name) ||
	    (svc && nla_put_u32(skb, L4LB_OPTION_ATTR_VALUE,
				l4lb_service_option(svc, i))) ||
	    nla_put_u32(skb, L4LB_OPTION_ATTR_MIN_VALUE, o->min) ||
	    nla_put_u32(skb, L4LB_OPTION_ATTR_MAX_VALUE, o->max) ||
	    nla_put_u32(skb, L4LB_OPTION_ATTR_DEFAULT, def) ||
	    nla_put_string(skb, L4LB_OPTION_ATTR_WHAT, o->what) ||
	    (o->key && nla_put(skb, L4LB_OPTION_ATTR_KEY, 0, NULL)) ||
	    (o->file && nla_put_string(skb, L4LB_OPTION_ATTR_PATH,
				       svc ? l4lb_service_path(svc) : "")) ||
	    (o->count && nla_put_flag(skb, L4LB_OPTION_ATTR_COUNT)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* @ops: NULL for "none".  @svc: a service with this scheduler, or NULL. */
static int fill_scheduler(struct sk_buff *skb,
			  const struct l4lb_sched_ops *ops,
			  const struct l4lb_service *svc)
{
	struct nlattr *nest, *options;
	unsigned int i;

	nest = nla_nest_start(skb, L4LB_ATTR_SCHEDULER);
	if (!nest ||
	    nla_put_string(skb, L4LB_SCHED_ATTR_NAME,
			   ops ? ops->name : "none") ||
	    nla_put_u32(skb, L4LB_SCHED_ATTR_FLAGS, ops ? ops->flags : 0))
		return -EMSGSIZE;
	options = nla_nest_start(skb, L4LB_SCHED_ATTR_OPTIONS);
	if (!options)
		return -EMSGSIZE;
	for (i = 0; ops && i < ops->n_options; i++)
		if (fill_option(skb, ops, i, svc))
			return -EMSGSIZE;
	nla_nest_end(skb, options);
	nla_nest_end(skb, nest);
	return 0;
}

static int fill_key(struct sk_buff *skb, const struct l4lb_service *svc)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_ATTR_SERVICE);

	if (!nest || l4lb_nl_fill_key(skb, &svc->key))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int fill_options(struct sk_buff *skb, const struct l4lb_service *svc)
{
	return fill_key(skb, svc) ?:
	       fill_scheduler(skb, l4lb_service_sched(svc), svc);
}

static int fill_policy(struct sk_buff *skb, const struct l4lb_service *svc)
{
	return fill_key(skb, svc) ?: l4lb_nl_fill_policy(skb, &svc->policy) ?:
	       l4lb_nl_fill_claim(skb, &svc->claim) ?:
	       l4lb_nl_fill_shadow(skb, svc) ?:
	       l4lb_nl_fill_policy_live(skb, svc);
}

struct sk_buff *l4lb_nl_reply_new(struct genl_info *info, void **hdr)
{
	struct sk_buff *msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!msg)
		return NULL;
	*hdr = genlmsg_put_reply(msg, info, &l4lb_ext_family, 0,
				 info->genlhdr->cmd);
	if (*hdr)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

int l4lb_nl_reply_send(struct genl_info *info, struct sk_buff *msg, void *hdr,
		       int err)
{
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

/* ---- commands ---- */

/* The reference of l4lb_sched_get() keeps the module and its strings. */
static int get_scheduler(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *nest = info->attrs[L4LB_ATTR_SCHEDULER];
	struct nlattr *tb[NAME_ATTR_MAX + 1] = { };
	const struct l4lb_sched_ops *ops;
	struct sk_buff *msg;
	void *hdr;
	int err;

	err = nest ? nla_parse_nested(tb, NAME_ATTR_MAX, nest, name_policy,
				      info->extack) : 0;
	if (err)
		return err;
	if (!tb[L4LB_SCHED_ATTR_NAME]) {
		NL_SET_ERR_MSG(info->extack,
			       "attribute SCHEDULER with a NAME is missing");
		return -EINVAL;
	}
	ops = l4lb_nl_get_scheduler(tb[L4LB_SCHED_ATTR_NAME], info->extack);
	if (!ops)
		return -ENOENT;
	msg = l4lb_nl_reply_new(info, &hdr);
	err = msg ? fill_scheduler(msg, ops, NULL) : -ENOMEM;
	l4lb_sched_put(ops);
	return msg ? l4lb_nl_reply_send(info, msg, hdr, err) : err;
}

static int dump_start(struct netlink_callback *cb)
{
	if (!nlmsg_attrlen(cb->nlh, GENL_HDRLEN))
		return 0;
	NL_SET_ERR_MSG(cb->extack, "a dump of all takes no attributes");
	return -EINVAL;
}

struct scheduler_dump {
	struct sk_buff		*skb;
	struct netlink_callback	*cb;
};

static int dump_scheduler(const struct l4lb_sched_ops *ops, void *arg)
{
	struct scheduler_dump *dump = arg;
	void *hdr;

	hdr = genlmsg_put(dump->skb, NETLINK_CB(dump->cb->skb).portid,
			  dump->cb->nlh->nlmsg_seq, &l4lb_ext_family,
			  NLM_F_MULTI,
			  L4LB_CMD_GET_SCHEDULER);
	if (!hdr)
		return -EMSGSIZE;
	if (fill_scheduler(dump->skb, ops, NULL)) {
		genlmsg_cancel(dump->skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(dump->skb, hdr);
	dump->cb->args[0]++;
	return 0;
}

/* The position is an index: if schedulers come or go between two calls, some
 * may be missing or listed twice.
 */
static int dump_schedulers(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct scheduler_dump dump = { .skb = skb, .cb = cb };

	if (!l4lb_nl_net(skb, cb->extack))
		return -EAGAIN;
	l4lb_sched_each(cb->args[0], dump_scheduler, &dump);
	return skb->len;
}

/* Send a reply about one service, filled in by @fill. */
static int get_service(struct sk_buff *skb, struct genl_info *info,
		       int (*fill)(struct sk_buff *skb,
				   const struct l4lb_service *svc))
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_service *svc;
	struct l4lb_svc_key key;
	struct sk_buff *msg;
	void *hdr;
	int err;

	err = parse_key(&key, info);
	if (err)
		return err;
	msg = l4lb_nl_reply_new(info, &hdr);
	if (!msg)
		return -ENOMEM;
	mutex_lock(&ln->lock);
	svc = find_service(ln, &key, info);
	err = svc ? fill(msg, svc) : -ESRCH;
	mutex_unlock(&ln->lock);
	return l4lb_nl_reply_send(info, msg, hdr, err);
}

static int get_service_options(struct sk_buff *skb, struct genl_info *info)
{
	return get_service(skb, info, fill_options);
}

static int set_service_options(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_sched_values values = { };
	struct l4lb_service *svc;
	unsigned long seen = 0;
	struct l4lb_svc_key key;
	int err;

	err = parse_key(&key, info);
	if (err)
		return err;
	mutex_lock(&ln->lock);
	svc = find_service(ln, &key, info);
	err = svc ? parse_options(svc, &values, &seen, info) : -ESRCH;
	if (!err)
		err = l4lb_service_set_options(svc, &values, seen, info->extack);
	l4lb_values_release(&values);
	mutex_unlock(&ln->lock);
	return err;
}

static int get_service_policy(struct sk_buff *skb, struct genl_info *info)
{
	return get_service(skb, info, fill_policy);
}

/* Does @change to the service that the request names, with the mutex held. */
static int change_service(struct genl_info *info,
			  int (*change)(struct l4lb_service *svc,
					struct genl_info *info))
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_service *svc;
	struct l4lb_svc_key key;
	int err;

	err = parse_key(&key, info);
	if (err)
		return err;
	mutex_lock(&ln->lock);
	svc = find_service(ln, &key, info);
	err = svc ? change(svc, info) : -ESRCH;
	mutex_unlock(&ln->lock);
	return err;
}

static int parse_change(struct l4lb_policy *policy, struct l4lb_claim *claim,
			u8 af, struct genl_info *info)
{
	struct nlattr **attrs = info->attrs;
	int err = 0;

	if (attrs[L4LB_ATTR_POLICY] ||
	    (!attrs[L4LB_ATTR_OWNER] && !attrs[L4LB_ATTR_PROTECTED] &&
	     !attrs[L4LB_ATTR_SHADOW]))
		err = l4lb_nl_parse_policy(policy, attrs[L4LB_ATTR_POLICY],
					   af, info->extack);
	return err ?: l4lb_nl_parse_claim(claim, attrs, info->extack);
}

/* info->user_ptr[1]: the scheduler that attribute SHADOW names, with a reference. */
static int change_policy(struct l4lb_service *svc, struct genl_info *info)
{
	const struct l4lb_sched_ops *ops = info->user_ptr[1];
	bool shadows = info->attrs[L4LB_ATTR_SHADOW] && ops != l4lb_shadow_sched(svc);
	struct l4lb_policy policy = svc->policy;
	struct l4lb_claim claim = svc->claim;
	struct l4lb_shadow *shadow = NULL;
	int err = parse_change(&policy, &claim, svc->key.af, info);

	if (err)
		return err;
	if (shadows)
		shadow = l4lb_shadow_create(svc, ops, l4lb_pool_current(svc),
					    info->extack);
	err = PTR_ERR_OR_ZERO(shadow) ?:
	      l4lb_service_set_policy(svc, &policy, info->extack);
	if (err) {
		l4lb_shadow_discard(shadow);
		return err;
	}
	svc->claim = claim;
	if (shadows) {
		l4lb_shadow_set(svc, shadow);
		info->user_ptr[1] = NULL;	/* it is the shadow's now */
	}
	return 0;
}

static int set_service_policy(struct sk_buff *skb, struct genl_info *info)
{
	const struct l4lb_sched_ops *ops;
	int err;

	err = l4lb_nl_parse_shadow(&ops, info->attrs[L4LB_ATTR_SHADOW], info->extack);
	if (err)
		return err;
	info->user_ptr[1] = (void *)ops;
	err = change_service(info, change_policy);
	l4lb_sched_put(info->user_ptr[1]);
	return err;
}

static int set_drain(struct sk_buff *skb, struct genl_info *info)
{
	return change_service(info, l4lb_nl_set_drain);
}

static int set_server(struct sk_buff *skb, struct genl_info *info)
{
	return change_service(info, l4lb_nl_set_server);
}

static int zero_service(struct sk_buff *skb, struct genl_info *info)
{
	return change_service(info, l4lb_nl_zero_service);
}

static int dump_policy(struct sk_buff *skb, struct netlink_callback *cb,
		       const struct l4lb_service *svc)
{
	void *hdr;

	if (!memchr_inv(&svc->policy, 0, sizeof(svc->policy)) &&
	    !svc->claim.owner[0] && !svc->claim.protected && !l4lb_shadow_sched(svc))
		return 0;
	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &l4lb_ext_family, NLM_F_MULTI, L4LB_CMD_GET_POLICY);
	if (!hdr)
		return -EMSGSIZE;
	if (fill_policy(skb, svc)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* The position is an index, as above. */
static int dump_policies(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(skb, cb->extack);
	struct l4lb_service *svc;
	long i = 0;

	if (!ln)
		return -EAGAIN;
	mutex_lock(&ln->lock);
	list_for_each_entry(svc, &ln->services, list) {
		if (i++ < cb->args[0])
			continue;
		if (dump_policy(skb, cb, svc))
			break;
		cb->args[0] = i;
	}
	mutex_unlock(&ln->lock);
	return skb->len;
}

/* Each command has a policy of its own, so that attributes it does not use are
 * refused.
 */
#define COMMAND(name, request, functions...)				\
	{								\
		.cmd = L4LB_CMD_##name,					\
		.flags = GENL_ADMIN_PERM,				\
		.policy = request,					\
		.maxattr = ARRAY_SIZE(request) - 1,			\
		functions						\
	}

static const struct genl_ops ext_ops[] = {
	COMMAND(GET_SCHEDULER, scheduler_request, .doit = get_scheduler,
		.start = dump_start, .dumpit = dump_schedulers),
	COMMAND(GET_OPTIONS, service_request, .doit = get_service_options),
	COMMAND(SET_OPTIONS, options_request, .doit = set_service_options),
	COMMAND(GET_POLICY, service_request, .doit = get_service_policy,
		.start = dump_start, .dumpit = dump_policies),
	COMMAND(SET_POLICY, policy_request, .doit = set_service_policy),
	COMMAND(SET_SERVICES, set_request, .doit = l4lb_nl_set_services),
	COMMAND(GET_SERVICES, list_request, .dumpit = l4lb_nl_dump_services),
	COMMAND(GET_CONNS, conns_request, .start = l4lb_nl_start_conns,
		.dumpit = l4lb_nl_dump_conns, .done = l4lb_nl_done_conns),
	COMMAND(GET_SYNC, no_request, .doit = l4lb_nl_get_sync,
		.start = dump_start, .dumpit = l4lb_nl_dump_peers),
	COMMAND(SET_SYNC, sync_request, .doit = l4lb_nl_set_sync),
	COMMAND(NEW_PEER, peer_request, .doit = l4lb_nl_new_peer),
	COMMAND(DEL_PEER, peer_request, .doit = l4lb_nl_del_peer),
	COMMAND(SYNC_RESYNC, resync_request, .doit = l4lb_nl_sync_resync),
	COMMAND(SYNC_VERIFY, peer_request, .doit = l4lb_nl_sync_verify),
	COMMAND(GET_EVENT, no_request, .doit = l4lb_nl_get_event),
	COMMAND(SET_DRAIN, drain_request, .doit = set_drain),
	COMMAND(GET_DRAIN, no_request, .start = dump_start,
		.dumpit = l4lb_nl_dump_drains),
	COMMAND(KILL_CONNS, kill_request, .doit = l4lb_nl_kill_conns),
	COMMAND(EXPORT_CONNS, no_request, .start = l4lb_nl_start_export,
		.dumpit = l4lb_nl_dump_export, .done = l4lb_nl_done_export),
	COMMAND(IMPORT_CONNS, handover_request, .doit = l4lb_nl_import_conns),
	COMMAND(LOG_CONNS, no_request, .doit = l4lb_nl_get_log),
	COMMAND(TRY_SCHEDULER, trial_request, .start = l4lb_nl_start_trial,
		.dumpit = l4lb_nl_dump_trial, .done = l4lb_nl_done_trial),
	COMMAND(GET_SHADOW, service_request, .start = l4lb_nl_start_shadow,
		.dumpit = l4lb_nl_dump_shadow),
	COMMAND(GET_LATENCY, service_request, .start = l4lb_nl_start_servers,
		.dumpit = l4lb_nl_dump_latency),
	COMMAND(SET_SERVER, server_request, .doit = set_server),
	COMMAND(ZERO_SERVICE, service_request, .doit = zero_service),
};

#undef COMMAND

static const struct genl_multicast_group ext_groups[] = {
	[L4LB_NL_EVENTS] = { .name = L4LB_GENL_EVENTS,
			     .flags = GENL_MCAST_CAP_NET_ADMIN },
	[L4LB_NL_LOG] = { .name = L4LB_GENL_LOG,
			  .flags = GENL_MCAST_CAP_NET_ADMIN },
};

struct genl_family l4lb_ext_family __ro_after_init = {
	.name		= L4LB_GENL_NAME,
	.version	= L4LB_GENL_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.pre_doit	= l4lb_nl_pre_doit,
	.module		= THIS_MODULE,
	.ops		= ext_ops,
	.n_ops		= ARRAY_SIZE(ext_ops),
	.mcgrps		= ext_groups,
	.n_mcgrps	= ARRAY_SIZE(ext_groups),
};

/* No module alias: a request for this family must not load l4lb on a host that
 * uses ip_vs.
 */
int __init l4lb_ext_init(void)
{
	l4lb_sync_hello_listen(l4lb_nl_peer_event);
	l4lb_event_listen(l4lb_nl_send_event);
	l4lb_nl_log_init();
	return genl_register_family(&l4lb_ext_family);
}

void l4lb_ext_exit(void)
{
	genl_unregister_family(&l4lb_ext_family);
}

// SPDX-License-Identifier: GPL-2.0
/* Drains of real servers: orders, and a list of those that have weight 0 or start
 * slowly.
 */
#include "api/netlink_drain.h"

#include <net/netlink.h>

#include "api/netlink_parse.h"
#include "api/netlink_refuse.h"
#include "api/netlink_servers.h"
#include "config/drain.h"
#include "service/ramp.h"

const struct nla_policy l4lb_nl_drain_policy[] = {
	[L4LB_DRAIN_ATTR_ADDR]	= NLA_POLICY_RANGE(NLA_BINARY,
						   sizeof(struct in_addr),
						   sizeof(struct in6_addr)),
	[L4LB_DRAIN_ATTR_PORT]	= { .type = NLA_U16 },
	[L4LB_DRAIN_ATTR_AF]	= { .type = NLA_U16 },
	[L4LB_DRAIN_ATTR_SECONDS] = NLA_POLICY_MIN(NLA_U32, 1),
	[L4LB_DRAIN_ATTR_THEN]	= NLA_POLICY_MAX(NLA_U32, L4LB_THEN_MAX),
	[L4LB_DRAIN_ATTR_LAST_WEIGHT] = NLA_POLICY_MIN(NLA_U32, 1),
};

enum {
	DRAIN_ATTR_MAX	= ARRAY_SIZE(l4lb_nl_drain_policy) - 1,
};

static int parse_server(struct l4lb_server_config *cfg, u16 svc_af,
			struct nlattr **tb, struct genl_info *info)
{
	struct l4lb_nl_server_name name = {
		.nest	= info->attrs[L4LB_ATTR_DRAIN],
		.addr	= tb[L4LB_DRAIN_ATTR_ADDR],
		.port	= tb[L4LB_DRAIN_ATTR_PORT],
		.af	= tb[L4LB_DRAIN_ATTR_AF],
	};

	return l4lb_nl_parse_server_name(cfg, svc_af, &name, info->extack);
}

static u32 get_u32(const struct nlattr *attr)
{
	return attr ? nla_get_u32(attr) : 0;
}

static int parse_drain(struct l4lb_drain *drain, struct nlattr **tb,
		       struct genl_info *info)
{
	const struct nlattr *last = tb[L4LB_DRAIN_ATTR_LAST_WEIGHT];

	drain->seconds = get_u32(tb[L4LB_DRAIN_ATTR_SECONDS]);
	drain->then = get_u32(tb[L4LB_DRAIN_ATTR_THEN]);
	drain->last_weight = get_u32(last);
	if (drain->seconds > L4LB_DRAIN_SECONDS_MAX)
		return l4lb_nl_refuse(info->extack, tb[L4LB_DRAIN_ATTR_SECONDS],
				      "drain: SECONDS must be 1 to 2678400 (31 days)");
	if (drain->last_weight > INT_MAX)
		return l4lb_nl_refuse(info->extack, last,
				      "drain: LAST_WEIGHT must be 1 to 2147483647");
	if (last && (drain->seconds || drain->then))
		return l4lb_nl_refuse(info->extack, last,
				      "drain: LAST_WEIGHT goes without SECONDS and THEN");
	return 0;
}

int l4lb_nl_set_drain(struct l4lb_service *svc, struct genl_info *info)
{
	const struct nlattr *nest = info->attrs[L4LB_ATTR_DRAIN];
	struct l4lb_server_config cfg = { };
	struct nlattr *tb[DRAIN_ATTR_MAX + 1];
	struct l4lb_drain drain;
	int err;

	if (!nest) {
		NL_SET_ERR_MSG(info->extack, "attribute DRAIN is missing");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, DRAIN_ATTR_MAX, nest, l4lb_nl_drain_policy,
			       info->extack) ?:
	      parse_server(&cfg, svc->key.af, tb, info) ?:
	      parse_drain(&drain, tb, info);
	return err ?: l4lb_drain_begin(svc, l4lb_server_find(svc, &cfg), &drain,
				       info->extack);
}

/* ---- the list ---- */

static int fill_deadline(struct sk_buff *skb,
			 const struct l4lb_server_watch *watch)
{
	long left = watch->deadline - jiffies;

	if (list_empty(&watch->draining))
		return 0;
	return nla_put_u64_64bit(skb, L4LB_DRAIN_ATTR_LEFT,
				 jiffies_to_msecs(max(left, 0L)),
				 L4LB_DRAIN_ATTR_PAD);
}

static int fill_ramp(struct sk_buff *skb, const struct l4lb_server *server)
{
	u64 percent = 100;

	if (!server->ramp.phase)
		return 0;
	if (server->ramp.phase == L4LB_RAMP_RISES)
		percent = percent * l4lb_ramp_part(server->ramp.svc, server) >> 32;
	return nla_put_u32(skb, L4LB_DRAIN_ATTR_RAMP, percent);
}

static int fill_drain(struct sk_buff *skb, const struct l4lb_server *server)
{
	const struct l4lb_sched_server *dest = &server->sched;
	struct nlattr *nest = nla_nest_start(skb, L4LB_ATTR_DRAIN);

	if (!nest ||
	    nla_put(skb, L4LB_DRAIN_ATTR_ADDR, sizeof(dest->addr),
		    &dest->addr) ||
	    nla_put_be16(skb, L4LB_DRAIN_ATTR_PORT, dest->port) ||
	    nla_put_u16(skb, L4LB_DRAIN_ATTR_AF, dest->af) ||
	    nla_put_u32(skb, L4LB_DRAIN_ATTR_LAST_WEIGHT, dest->last_weight) ||
	    (server->watch.then &&
	     nla_put_u32(skb, L4LB_DRAIN_ATTR_THEN, server->watch.then)) ||
	    fill_ramp(skb, server) ||
	    fill_deadline(skb, &server->watch))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Of those with weight 0, not one that was added so, unless it is to be drained. */
static bool is_listed(const struct l4lb_server *server)
{
	return server->ramp.phase ||
	       (!server->sched.weight &&
		(server->sched.last_weight || server->watch.then ||
		 !list_empty(&server->watch.draining)));
}

int l4lb_nl_dump_drains(struct sk_buff *skb, struct netlink_callback *cb)
{
	static const struct l4lb_nl_server_dump dump = {
		.cmd	= L4LB_CMD_GET_DRAIN,
		.lists	= is_listed,
		.fill	= fill_drain,
	};

	return l4lb_nl_dump_servers(skb, cb, &dump);
}

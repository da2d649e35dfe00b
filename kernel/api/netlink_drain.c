// SPDX-License-Identifier: GPL-2.0
/* Drains of real servers: orders, and a list of those that have weight 0 or start
 * slowly.
 */
#include "api/netlink_drain.h"

#include <net/netlink.h>

#include "api/netlink_fill.h"
#include "api/netlink_l4lb.h"
#include "api/netlink_parse.h"
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

static int refuse(struct genl_info *info, const struct nlattr *attr,
		  const char *sentence)
{
	info->extack->_msg = sentence;
	NL_SET_BAD_ATTR(info->extack, attr);
	return -EINVAL;
}

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
		return refuse(info, tb[L4LB_DRAIN_ATTR_SECONDS],
			      "drain: SECONDS must be 1 to 2678400 (31 days)");
	if (drain->last_weight > INT_MAX)
		return refuse(info, last,
			      "drain: LAST_WEIGHT must be 1 to 2147483647");
	if (last && (drain->seconds || drain->then))
		return refuse(info, last,
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

/* Position of a dump: the service, and how many of its servers were seen. */
struct position {
	struct l4lb_nl_cursor	cursor;
	unsigned int		server;
};

static int fill_key(struct sk_buff *skb, const struct l4lb_svc_key *key)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_ATTR_SERVICE);

	if (!nest || l4lb_nl_fill_key(skb, key))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

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

static int dump_server(struct sk_buff *skb, struct netlink_callback *cb,
		       const struct l4lb_server *server)
{
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &l4lb_ext_family, NLM_F_MULTI, L4LB_CMD_GET_DRAIN);
	if (!hdr)
		return -EMSGSIZE;
	if (fill_key(skb, &server->name.svc) || fill_drain(skb, server)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

static int dump_service(struct sk_buff *skb, struct netlink_callback *cb,
			const struct l4lb_service *svc, unsigned int *at)
{
	const struct l4lb_server *server;
	unsigned int i = 0;

	list_for_each_entry(server, &svc->servers, node) {
		if (i++ < *at)
			continue;
		if (is_listed(server) && dump_server(skb, cb, server))
			return -EMSGSIZE;
		*at = i;
		if (i % 256 == 0)
			cond_resched();
	}
	return 0;
}

/* If services or servers come or go between two calls, some may be missing or
 * listed twice.
 */
int l4lb_nl_dump_drains(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(skb, cb->extack);
	struct position *pos = (void *)cb->ctx;
	struct l4lb_service *svc;

	BUILD_BUG_ON(sizeof(*pos) > sizeof(cb->ctx));

	if (!ln)
		return -EAGAIN;
	mutex_lock(&ln->lock);
	svc = l4lb_nl_cursor_service(ln, &pos->cursor);
	if (svc && memcmp(&svc->key, &pos->cursor.key, sizeof(svc->key)))
		pos->server = 0;
	if (svc) {
		list_for_each_entry_from(svc, &ln->services, list) {
			pos->cursor.key = svc->key;
			if (dump_service(skb, cb, svc, &pos->server))
				goto unlock;
			pos->cursor.index++;
			pos->server = 0;
		}
		l4lb_nl_cursor_end(&pos->cursor);
	}
unlock:
	mutex_unlock(&ln->lock);
	return skb->len;
}

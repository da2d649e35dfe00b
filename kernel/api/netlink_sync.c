// SPDX-License-Identifier: GPL-2.0
/*
 * Commands of family IPVS about synchronisation daemons.  As with services, the
 * order of checks decides which error a wrong request gets.
 */
#include "api/netlink_sync.h"

#include <linux/in.h>
#include <net/ipv6.h>

#include "api/netlink_refuse.h"
#include "config/edit.h"

/* Longer attributes are cut off, shorter ones refused: see netlink_parse.c. */
static const struct nla_policy daemon_policy[IPVS_DAEMON_ATTR_MAX + 1] = {
	[IPVS_DAEMON_ATTR_STATE]	= { .type = NLA_U32 },
	[IPVS_DAEMON_ATTR_MCAST_IFN]	= { .type = NLA_NUL_STRING,
					    .len = IP_VS_IFNAME_MAXLEN - 1 },
	[IPVS_DAEMON_ATTR_SYNC_ID]	= { .type = NLA_U32 },
	[IPVS_DAEMON_ATTR_SYNC_MAXLEN]	= { .type = NLA_U16 },
	[IPVS_DAEMON_ATTR_MCAST_GROUP]	= { .type = NLA_U32 },
	[IPVS_DAEMON_ATTR_MCAST_GROUP6]	=
		NLA_POLICY_MIN_LEN(sizeof(struct in6_addr)),
	[IPVS_DAEMON_ATTR_MCAST_PORT]	= { .type = NLA_U16 },
	[IPVS_DAEMON_ATTR_MCAST_TTL]	= { .type = NLA_U8 },
};

static int parse_nest(struct genl_info *info, struct nlattr **tb)
{
	const struct nlattr *nest = info->attrs[IPVS_CMD_ATTR_DAEMON];

	if (!nest) {
		NL_SET_ERR_MSG(info->extack, "attribute DAEMON is missing");
		return -EINVAL;
	}
	if (nla_parse_nested_deprecated(tb, IPVS_DAEMON_ATTR_MAX, nest,
					daemon_policy, info->extack))
		return -EINVAL;
	return 0;
}

/* If both are given, the IPv4 group wins and the other is not looked at. */
static int parse_group(struct l4lb_sync_config *config, struct nlattr **tb,
		       struct genl_info *info)
{
	const struct nlattr *ipv4 = tb[IPVS_DAEMON_ATTR_MCAST_GROUP];
	const struct nlattr *ipv6 = tb[IPVS_DAEMON_ATTR_MCAST_GROUP6];

	if (ipv4) {
		config->af = AF_INET;
		config->group.ip = nla_get_in_addr(ipv4);
		if (!ipv4_is_multicast(config->group.ip))
			return l4lb_nl_refuse(info->extack, ipv4,
					      "the group must be multicast, in 224.0.0.0/4");
	} else if (ipv6) {
		config->af = AF_INET6;
		config->group.in6 = nla_get_in6_addr(ipv6);
		if (!ipv6_addr_is_multicast(&config->group.in6))
			return l4lb_nl_refuse(info->extack, ipv6,
					      "the group must be multicast, in ff00::/8");
	}
	return 0;
}

static int parse_config(struct l4lb_sync_config *config, struct nlattr **tb,
			struct genl_info *info)
{
	const struct nlattr *nest = info->attrs[IPVS_CMD_ATTR_DAEMON];

	memset(config, 0, sizeof(*config));
	if (!tb[IPVS_DAEMON_ATTR_STATE])
		return l4lb_nl_refuse(info->extack, nest, "daemon: attribute STATE is missing");
	if (!tb[IPVS_DAEMON_ATTR_MCAST_IFN])
		return l4lb_nl_refuse(info->extack, nest, "daemon: attribute MCAST_IFN is missing");
	if (!tb[IPVS_DAEMON_ATTR_SYNC_ID])
		return l4lb_nl_refuse(info->extack, nest, "daemon: attribute SYNC_ID is missing");
	config->state = nla_get_u32(tb[IPVS_DAEMON_ATTR_STATE]);
	nla_strscpy(config->ifname, tb[IPVS_DAEMON_ATTR_MCAST_IFN],
		    sizeof(config->ifname));
	config->sync_id = nla_get_u32(tb[IPVS_DAEMON_ATTR_SYNC_ID]);
	if (tb[IPVS_DAEMON_ATTR_SYNC_MAXLEN])
		config->maxlen =
			nla_get_u16(tb[IPVS_DAEMON_ATTR_SYNC_MAXLEN]);
	if (tb[IPVS_DAEMON_ATTR_MCAST_PORT])
		config->port = nla_get_u16(tb[IPVS_DAEMON_ATTR_MCAST_PORT]);
	if (tb[IPVS_DAEMON_ATTR_MCAST_TTL])
		config->ttl = nla_get_u8(tb[IPVS_DAEMON_ATTR_MCAST_TTL]);
	return parse_group(config, tb, info);
}

int l4lb_nl_prepare_receiver(struct l4lb_net *ln, struct genl_info *info)
{
	int err;

	mutex_lock(&ln->lock);
	err = ln->exiting ? -ENODEV :
			    l4lb_service_net_prepare(ln, info->extack);
	mutex_unlock(&ln->lock);
	return err;
}

int l4lb_nl_new_daemon(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[IPVS_DAEMON_ATTR_MAX + 1];
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_sync_config config;
	int err;

	err = parse_nest(info, tb) ?: parse_config(&config, tb, info);
	if (!err && config.state == IP_VS_STATE_BACKUP)
		err = l4lb_nl_prepare_receiver(ln, info);
	return err ?: l4lb_sync_start(ln, &config, info->extack);
}

/* Only the state counts: keepalived also sends other attributes. */
int l4lb_nl_del_daemon(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[IPVS_DAEMON_ATTR_MAX + 1];
	const struct nlattr *state;
	int err;

	err = parse_nest(info, tb);
	if (err)
		return err;
	state = tb[IPVS_DAEMON_ATTR_STATE];
	if (!state)
		return l4lb_nl_refuse(info->extack, info->attrs[IPVS_CMD_ATTR_DAEMON],
				      "daemon: attribute STATE is missing");
	err = l4lb_sync_stop(info->user_ptr[0], nla_get_u32(state));
	if (err == -ESRCH)
		NL_SET_ERR_MSG_ATTR(info->extack, state,
				    "this daemon does not run");
	else if (err)
		NL_SET_ERR_MSG_ATTR(info->extack, state,
				    "the daemon's state must be 1 (master) or 2 (backup)");
	return err;
}

static int fill_group(struct sk_buff *skb,
		      const struct l4lb_sync_config *config)
{
	if (config->af == AF_INET6)
		return nla_put_in6_addr(skb, IPVS_DAEMON_ATTR_MCAST_GROUP6,
					&config->group.in6);
	return nla_put_in_addr(skb, IPVS_DAEMON_ATTR_MCAST_GROUP,
			       config->group.ip);
}

int l4lb_nl_fill_daemon(struct sk_buff *skb,
			const struct l4lb_sync_config *config)
{
	struct nlattr *nest = nla_nest_start_noflag(skb, IPVS_CMD_ATTR_DAEMON);

	if (!nest ||
	    nla_put_u32(skb, IPVS_DAEMON_ATTR_STATE, config->state) ||
	    nla_put_string(skb, IPVS_DAEMON_ATTR_MCAST_IFN, config->ifname) ||
	    nla_put_u32(skb, IPVS_DAEMON_ATTR_SYNC_ID, config->sync_id) ||
	    nla_put_u16(skb, IPVS_DAEMON_ATTR_SYNC_MAXLEN, config->maxlen) ||
	    nla_put_u16(skb, IPVS_DAEMON_ATTR_MCAST_PORT, config->port) ||
	    nla_put_u8(skb, IPVS_DAEMON_ATTR_MCAST_TTL, config->ttl) ||
	    fill_group(skb, config))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

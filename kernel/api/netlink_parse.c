// SPDX-License-Identifier: GPL-2.0
/*
 * Requests of the IPVS family: attributes to keys and configurations.
 *
 * The family is older than strict attribute checks, and its clients rely on lax
 * ones: unknown attributes, nests without NLA_F_NESTED, fixed width attributes
 * that are too long, addresses shorter than their family's.  Hence the
 * _deprecated parsers; the policies still bound what is read.
 *
 * A nest that the parser refuses is EINVAL, even if the parser returns ERANGE.
 */
#include "api/netlink_parse.h"

#include <net/netlink.h>
#include <net/sock.h>

#include "api/netlink_refuse.h"
#include "service/registry.h"

const struct nla_policy l4lb_nl_policy[IPVS_CMD_ATTR_MAX + 1] = {
	[IPVS_CMD_ATTR_SERVICE]		= { .type = NLA_NESTED },
	[IPVS_CMD_ATTR_DEST]		= { .type = NLA_NESTED },
	[IPVS_CMD_ATTR_DAEMON]		= { .type = NLA_NESTED },
	[IPVS_CMD_ATTR_TIMEOUT_TCP]	= { .type = NLA_U32 },
	[IPVS_CMD_ATTR_TIMEOUT_TCP_FIN]	= { .type = NLA_U32 },
	[IPVS_CMD_ATTR_TIMEOUT_UDP]	= { .type = NLA_U32 },
};

static const struct nla_policy service_policy[IPVS_SVC_ATTR_MAX + 1] = {
	[IPVS_SVC_ATTR_AF]		= { .type = NLA_U16 },
	[IPVS_SVC_ATTR_PROTOCOL]	= { .type = NLA_U16 },
	[IPVS_SVC_ATTR_ADDR]		= { .type = NLA_BINARY,
					    .len = sizeof(union nf_inet_addr) },
	[IPVS_SVC_ATTR_PORT]		= { .type = NLA_U16 },
	[IPVS_SVC_ATTR_FWMARK]		= { .type = NLA_U32 },
	[IPVS_SVC_ATTR_SCHED_NAME]	= { .type = NLA_NUL_STRING,
					    .len = IP_VS_SCHEDNAME_MAXLEN - 1 },
	[IPVS_SVC_ATTR_FLAGS]		= { .type = NLA_BINARY,
					    .len = sizeof(struct ip_vs_flags) },
	[IPVS_SVC_ATTR_TIMEOUT]		= { .type = NLA_U32 },
	[IPVS_SVC_ATTR_NETMASK]		= { .type = NLA_U32 },
	[IPVS_SVC_ATTR_STATS]		= { .type = NLA_NESTED },
	[IPVS_SVC_ATTR_PE_NAME]		= { .type = NLA_NUL_STRING,
					    .len = IP_VS_PENAME_MAXLEN },
};

static const struct nla_policy dest_policy[IPVS_DEST_ATTR_MAX + 1] = {
	[IPVS_DEST_ATTR_ADDR]		= { .type = NLA_BINARY,
					    .len = sizeof(union nf_inet_addr) },
	[IPVS_DEST_ATTR_PORT]		= { .type = NLA_U16 },
	[IPVS_DEST_ATTR_FWD_METHOD]	= { .type = NLA_U32 },
	[IPVS_DEST_ATTR_WEIGHT]		= { .type = NLA_U32 },
	[IPVS_DEST_ATTR_U_THRESH]	= { .type = NLA_U32 },
	[IPVS_DEST_ATTR_L_THRESH]	= { .type = NLA_U32 },
	[IPVS_DEST_ATTR_ACTIVE_CONNS]	= { .type = NLA_U32 },
	[IPVS_DEST_ATTR_INACT_CONNS]	= { .type = NLA_U32 },
	[IPVS_DEST_ATTR_PERSIST_CONNS]	= { .type = NLA_U32 },
	[IPVS_DEST_ATTR_STATS]		= { .type = NLA_NESTED },
	[IPVS_DEST_ATTR_ADDR_FAMILY]	= { .type = NLA_U16 },
	[IPVS_DEST_ATTR_TUN_TYPE]	= { .type = NLA_U8 },
	[IPVS_DEST_ATTR_TUN_PORT]	= { .type = NLA_U16 },
	[IPVS_DEST_ATTR_TUN_FLAGS]	= { .type = NLA_U16 },
};

/* A required attribute, and the sentence if it is missing. */
struct required {
	u16		type;
	const char	*sentence;
};

static const struct required by_address[] = {
	{ IPVS_SVC_ATTR_PROTOCOL, "service: attribute PROTOCOL (or FWMARK) is missing" },
	{ IPVS_SVC_ATTR_ADDR, "service: attribute ADDR (or FWMARK) is missing" },
	{ IPVS_SVC_ATTR_PORT, "service: attribute PORT (or FWMARK) is missing" },
};

static const struct required service_config[] = {
	{ IPVS_SVC_ATTR_SCHED_NAME, "service: attribute SCHED_NAME is missing" },
	{ IPVS_SVC_ATTR_FLAGS, "service: attribute FLAGS is missing" },
	{ IPVS_SVC_ATTR_TIMEOUT, "service: attribute TIMEOUT is missing" },
	{ IPVS_SVC_ATTR_NETMASK, "service: attribute NETMASK is missing" },
};

static const struct required dest_identity[] = {
	{ IPVS_DEST_ATTR_ADDR, "real server: attribute ADDR is missing" },
	{ IPVS_DEST_ATTR_PORT, "real server: attribute PORT is missing" },
};

static const struct required dest_config[] = {
	{ IPVS_DEST_ATTR_FWD_METHOD, "real server: attribute FWD_METHOD is missing" },
	{ IPVS_DEST_ATTR_WEIGHT, "real server: attribute WEIGHT is missing" },
	{ IPVS_DEST_ATTR_U_THRESH, "real server: attribute U_THRESH is missing" },
	{ IPVS_DEST_ATTR_L_THRESH, "real server: attribute L_THRESH is missing" },
};

static int check_required(const struct required *list, unsigned int n,
			  struct nlattr **tb, const struct nlattr *nest,
			  struct netlink_ext_ack *extack)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!tb[list[i].type])
			return l4lb_nl_refuse(extack, nest, list[i].sentence);
	}
	return 0;
}

/* Copies only the bytes that the family needs: the rest of @addr is hashed and
 * compared, too, and must be 0.
 */
static void copy_addr(union nf_inet_addr *addr, u16 af,
		      const struct nlattr *attr)
{
	memset(addr, 0, sizeof(*addr));
	if (af == AF_INET)
		nla_memcpy(&addr->ip, attr, sizeof(addr->ip));
	else
		nla_memcpy(&addr->in6, attr, sizeof(addr->in6));
}

int l4lb_nl_parse_key(struct l4lb_svc_key *key, struct nlattr **tb,
		      const struct nlattr *nest, struct netlink_ext_ack *extack)
{
	const struct nlattr *mark = tb[IPVS_SVC_ATTR_FWMARK];
	int err;

	if (!tb[IPVS_SVC_ATTR_AF]) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "service: attribute AF is missing");
		return -EINVAL;
	}
	if (!mark) {
		err = check_required(by_address, ARRAY_SIZE(by_address), tb,
				     nest, extack);
		if (err)
			return err;
	}

	/* No family has so high a number. */
	key->af = min_t(u16, nla_get_u16(tb[IPVS_SVC_ATTR_AF]), U8_MAX);
	if (key->af != AF_INET && key->af != AF_INET6) {
		NL_SET_ERR_MSG_ATTR(extack, tb[IPVS_SVC_ATTR_AF],
				    "service: family must be IPv4 (2) or IPv6 (10)");
		return -EAFNOSUPPORT;
	}

	if (mark) {
		/* Mark 0 is no mark: it means TCP port 0 of address 0. */
		key->fwmark = nla_get_u32(mark);
		key->protocol = key->fwmark ? 0 : IPPROTO_TCP;
		return 0;
	}
	key->protocol = nla_get_u16(tb[IPVS_SVC_ATTR_PROTOCOL]);
	copy_addr(&key->addr, key->af, tb[IPVS_SVC_ATTR_ADDR]);
	key->port = nla_get_be16(tb[IPVS_SVC_ATTR_PORT]);
	return 0;
}

static int parse_service_config(struct l4lb_nl_service *svc,
				struct nlattr **tb, const struct nlattr *nest,
				struct netlink_ext_ack *extack)
{
	const struct nlattr *engine = tb[IPVS_SVC_ATTR_PE_NAME];
	struct ip_vs_flags flags;
	int err;

	err = check_required(service_config, ARRAY_SIZE(service_config), tb,
			     nest, extack);
	if (err)
		return err;

	svc->sched = tb[IPVS_SVC_ATTR_SCHED_NAME];
	nla_strscpy(svc->cfg.sched, svc->sched, sizeof(svc->cfg.sched));
	nla_memcpy(&flags, tb[IPVS_SVC_ATTR_FLAGS], sizeof(flags));
	svc->cfg.flags = flags.flags;
	svc->mask = flags.mask;
	svc->cfg.timeout = nla_get_u32(tb[IPVS_SVC_ATTR_TIMEOUT]);
	svc->netmask = tb[IPVS_SVC_ATTR_NETMASK];
	svc->cfg.netmask = nla_get_u32(svc->netmask);
	if (engine && *(const char *)nla_data(engine))
		svc->engine = engine;
	svc->cfg.sip = svc->engine && !nla_strcmp(engine, "sip");
	return 0;
}

int l4lb_nl_parse_service(struct l4lb_nl_service *svc,
			  const struct nlattr *nest, bool full,
			  struct netlink_ext_ack *extack)
{
	struct nlattr *tb[IPVS_SVC_ATTR_MAX + 1];
	int err;

	BUILD_BUG_ON(IP_VS_SCHEDNAME_MAXLEN != L4LB_SCHED_NAME_MAX);

	memset(svc, 0, sizeof(*svc));
	if (!nest) {
		NL_SET_ERR_MSG(extack, "attribute SERVICE is missing");
		return -EINVAL;
	}
	if (nla_parse_nested_deprecated(tb, IPVS_SVC_ATTR_MAX, nest,
					service_policy, extack))
		return -EINVAL;

	err = l4lb_nl_parse_key(&svc->key, tb, nest, extack);
	if (err || !full)
		return err;
	return parse_service_config(svc, tb, nest, extack);
}

int l4lb_nl_parse_settings(struct l4lb_nl_service *svc,
			   const struct l4lb_svc_key *key,
			   const struct nlattr *nest,
			   struct netlink_ext_ack *extack)
{
	struct nlattr *tb[IPVS_SVC_ATTR_MAX + 1];

	memset(svc, 0, sizeof(*svc));
	svc->key = *key;
	if (nla_parse_nested_deprecated(tb, IPVS_SVC_ATTR_MAX, nest,
					service_policy, extack))
		return -EINVAL;
	return parse_service_config(svc, tb, nest, extack);
}

static int parse_dest_config(struct l4lb_server_config *cfg, struct nlattr **tb,
			     const struct nlattr *nest,
			     struct netlink_ext_ack *extack)
{
	int err;

	err = check_required(dest_config, ARRAY_SIZE(dest_config), tb, nest,
			     extack);
	if (err)
		return err;

	cfg->method = nla_get_u32(tb[IPVS_DEST_ATTR_FWD_METHOD]) &
		      IP_VS_CONN_F_FWD_MASK;
	cfg->weight = nla_get_u32(tb[IPVS_DEST_ATTR_WEIGHT]);
	cfg->u_thresh = nla_get_u32(tb[IPVS_DEST_ATTR_U_THRESH]);
	cfg->l_thresh = nla_get_u32(tb[IPVS_DEST_ATTR_L_THRESH]);
	if (tb[IPVS_DEST_ATTR_TUN_TYPE])
		cfg->tun.type = nla_get_u8(tb[IPVS_DEST_ATTR_TUN_TYPE]);
	if (tb[IPVS_DEST_ATTR_TUN_PORT])
		cfg->tun.port = nla_get_be16(tb[IPVS_DEST_ATTR_TUN_PORT]);
	if (tb[IPVS_DEST_ATTR_TUN_FLAGS])
		cfg->tun.flags = nla_get_u16(tb[IPVS_DEST_ATTR_TUN_FLAGS]);
	return 0;
}

int l4lb_nl_parse_dest(struct l4lb_server_config *cfg, u16 svc_af,
		       const struct nlattr *nest, bool full,
		       struct netlink_ext_ack *extack)
{
	struct nlattr *tb[IPVS_DEST_ATTR_MAX + 1];
	int err;

	memset(cfg, 0, sizeof(*cfg));
	if (!nest) {
		NL_SET_ERR_MSG(extack, "attribute DEST is missing");
		return -EINVAL;
	}
	if (nla_parse_nested_deprecated(tb, IPVS_DEST_ATTR_MAX, nest,
					dest_policy, extack))
		return -EINVAL;

	err = check_required(dest_identity, ARRAY_SIZE(dest_identity), tb,
			     nest, extack);
	if (!err && full)
		err = parse_dest_config(cfg, tb, nest, extack);
	if (err)
		return err;

	if (tb[IPVS_DEST_ATTR_ADDR_FAMILY])
		cfg->af = nla_get_u16(tb[IPVS_DEST_ATTR_ADDR_FAMILY]);
	if (!cfg->af)
		cfg->af = svc_af;
	if (cfg->af != AF_INET && cfg->af != AF_INET6) {
		NL_SET_ERR_MSG_ATTR(extack, tb[IPVS_DEST_ATTR_ADDR_FAMILY],
				    "real server: family must be IPv4 (2) or IPv6 (10)");
		return -EAFNOSUPPORT;
	}
	copy_addr(&cfg->addr, cfg->af, tb[IPVS_DEST_ATTR_ADDR]);
	cfg->port = nla_get_be16(tb[IPVS_DEST_ATTR_PORT]);
	return 0;
}

/* The family is registered early in the module's init, so that another owner
 * of the name is noticed before /proc is touched, and unregistered late in its
 * exit.  Requests that come during init or exit are refused.
 */
static bool serving(void)
{
	return READ_ONCE(THIS_MODULE->state) == MODULE_STATE_LIVE;
}

struct l4lb_net *l4lb_nl_net(const struct sk_buff *skb,
			     struct netlink_ext_ack *extack)
{
	if (serving())
		return l4lb_net(sock_net(skb->sk));
	NL_SET_ERR_MSG(extack, "l4lb is being loaded or unloaded, try again");
	return NULL;
}

int l4lb_nl_parse_server_name(struct l4lb_server_config *cfg, u16 svc_af,
			      const struct l4lb_nl_server_name *name,
			      struct netlink_ext_ack *extack)
{
	unsigned int size;

	if (!name->addr || !name->port)
		return l4lb_nl_refuse(extack, name->nest,
				      "real server: ADDR and PORT are needed");
	cfg->af = name->af ? nla_get_u16(name->af) : svc_af;
	if (cfg->af != AF_INET && cfg->af != AF_INET6)
		return l4lb_nl_refuse(extack, name->af,
				      "real server: family must be IPv4 (2) or IPv6 (10)");
	size = cfg->af == AF_INET ? sizeof(cfg->addr.ip) :
				    sizeof(cfg->addr.in6);
	if (nla_len(name->addr) != size &&
	    nla_len(name->addr) != sizeof(cfg->addr.in6))
		return l4lb_nl_refuse(extack, name->addr,
				      "real server: the address must have 16 bytes, or 4 for IPv4");
	memcpy(&cfg->addr, nla_data(name->addr), size);
	cfg->port = nla_get_be16(name->port);
	return 0;
}

int l4lb_nl_resolve(const struct l4lb_nl_service *svc,
		    const struct l4lb_sched_ops **ops,
		    struct netlink_ext_ack *extack)
{
	const u32 prefix_max = 128;

	*ops = NULL;
	if (strcmp(svc->cfg.sched, "none")) {
		*ops = l4lb_sched_get(svc->cfg.sched);
		if (!*ops) {
			l4lb_err_attr_str(extack, svc->sched,
					  "no such scheduler, and no module l4lb_NAME",
					  svc->cfg.sched);
			return -ENOENT;
		}
	}
	if (svc->engine && !svc->cfg.sip) {
		NL_SET_ERR_MSG_ATTR(extack, svc->engine,
				    "no such persistence engine: there is only \"sip\"");
		l4lb_sched_put(*ops);
		*ops = NULL;
		return -ENOENT;
	}
	if (svc->key.af == AF_INET6 &&
	    (!svc->cfg.netmask || svc->cfg.netmask > prefix_max)) {
		NL_SET_ERR_MSG_ATTR(extack, svc->netmask,
				    "the IPv6 prefix length must be 1 to 128");
		l4lb_sched_put(*ops);
		*ops = NULL;
		return -EINVAL;
	}
	return 0;
}

/**
 * l4lb_nl_pre_doit() - find the namespace of a command
 * @ops: the command
 * @skb: the request
 * @info: the request; gets the namespace, a struct l4lb_net, in user_ptr[0]
 *
 * Return: 0, or -EAGAIN with a sentence while the module is loaded or unloaded.
 */
int l4lb_nl_pre_doit(l4lb_genl_ops *ops, struct sk_buff *skb,
		     struct genl_info *info)
{
	struct l4lb_net *ln = l4lb_nl_net(skb, info->extack);

	info->user_ptr[0] = ln;
	return ln ? 0 : -EAGAIN;
}

static int parse_timeout(const struct nlattr *attr, unsigned int *jiffies_out,
			 struct netlink_ext_ack *extack)
{
	u32 seconds = attr ? nla_get_u32(attr) : 0;

	if (seconds > INT_MAX / HZ) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "the timeout is too long, or negative");
		return -EINVAL;
	}
	*jiffies_out = seconds * HZ;
	return 0;
}

int l4lb_nl_parse_timeouts(struct l4lb_timeouts *t, const struct nlattr *tcp,
			   const struct nlattr *tcp_fin, const struct nlattr *udp,
			   struct netlink_ext_ack *extack)
{
	return parse_timeout(tcp, &t->tcp, extack) ?:
	       parse_timeout(tcp_fin, &t->tcp_fin, extack) ?:
	       parse_timeout(udp, &t->udp, extack);
}

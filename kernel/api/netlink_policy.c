// SPDX-License-Identifier: GPL-2.0
/*
 * The nests POLICY and BANDS of family L4LB, and LIMITED: per-service overrides of
 * namespace settings, and the counters of PRIORITY and limits.  A new u32 needs
 * only a row in values[].
 */
#include "api/netlink_policy.h"

#include <linux/ctype.h>
#include <net/netlink.h>

#include "service/las.h"
#include "service/limit.h"
#include "service/snat.h"

#define VALUE(attr, member, limit)					\
	[L4LB_POLICY_ATTR_##attr] = {					\
		.name = #attr,						\
		.offset = offsetof(struct l4lb_policy, member),		\
		.max = limit,						\
	}

static const struct {
	const char	*name;
	unsigned int	offset;
	u32		max;
} values[] = {
	VALUE(TIMEOUT_TCP, tcp, L4LB_TIMEOUT_MAX),
	VALUE(TIMEOUT_TCP_FIN, tcp_fin, L4LB_TIMEOUT_MAX),
	VALUE(TIMEOUT_UDP, udp, L4LB_TIMEOUT_MAX),
	VALUE(TIMEOUT_SCTP, sctp, L4LB_TIMEOUT_MAX),
	VALUE(ON_IDLE, on_idle, L4LB_IDLE_MAX),
	VALUE(ON_LOSS, on_loss, L4LB_LOSS_MAX),
	VALUE(ON_DRAIN, on_drain, L4LB_DRAIN_MAX),
	VALUE(GUARD, guard, L4LB_GUARD_MAX),
	VALUE(FAST_PATH, fast_path, L4LB_FAST_PATH_MAX),
	VALUE(PRIORITY, priority, L4LB_PRIORITY_MAX),
	VALUE(LAS_BYTES_0, las_bytes[0], U32_MAX),
	VALUE(LAS_BYTES_1, las_bytes[1], U32_MAX),
	VALUE(LAS_BYTES_2, las_bytes[2], U32_MAX),
	VALUE(SYNC, sync, L4LB_SERVICE_SYNC_MAX),
	VALUE(LOG, log, L4LB_SERVICE_LOG_MAX),
	VALUE(RAMP, ramp, L4LB_RAMP_MAX),
	VALUE(LIMIT_RATE, limit_rate, L4LB_LIMIT_RATE_MAX),
	VALUE(LIMIT_BURST, limit_burst, L4LB_LIMIT_RATE_MAX),
	VALUE(LIMIT_CONNS, limit_conns, INT_MAX),
	VALUE(LIMIT_REPLY, limit_reply, L4LB_LIMIT_REPLY_MAX),
	VALUE(LATENCY, latency, L4LB_SERVICE_LATENCY_MAX),
	VALUE(CONN_STATE, conn_state, L4LB_SERVICE_STATE_MAX),
	[L4LB_POLICY_ATTR_SNAT] = { },	/* no u32 */
};

#undef VALUE

static_assert(ARRAY_SIZE(values) == L4LB_POLICY_ATTR_MAX + 1);

static const struct nla_policy snat_policy[] = {
	[L4LB_SNAT_ATTR_FIRST]	= { .type = NLA_BINARY, .len = sizeof(struct in6_addr) },
	[L4LB_SNAT_ATTR_LAST]	= { .type = NLA_BINARY, .len = sizeof(struct in6_addr) },
};

static const struct nla_policy policy_policy[] = {
	[1 ... L4LB_POLICY_ATTR_CONN_STATE] = { .type = NLA_U32 },
	[L4LB_POLICY_ATTR_SNAT]	= NLA_POLICY_NESTED(snat_policy),
};

static_assert(ARRAY_SIZE(policy_policy) == L4LB_POLICY_ATTR_MAX + 1);

static u32 *value_of(struct l4lb_policy *policy, unsigned int attr)
{
	return (void *)policy + values[attr].offset;
}

static int check_conn_state(const struct l4lb_policy *policy,
			    struct netlink_ext_ack *extack)
{
	if (policy->conn_state != L4LB_SERVICE_STATE_LAZY)
		return 0;
	if (policy->latency || policy->limit_rate || policy->limit_conns)
		NL_SET_ERR_MSG(extack,
			       "policy: CONN_STATE lazy excludes LATENCY and limits: both need the first packet");
	else if (policy->snat.af)
		NL_SET_ERR_MSG(extack,
			       "policy: CONN_STATE lazy excludes SNAT: a port needs an entry");
	else
		return 0;
	return -EOPNOTSUPP;
}

/* An address of family @af, padded or not. */
static int parse_address(union nf_inet_addr *addr, const struct nlattr *attr, u8 af)
{
	static const u8 padding[sizeof(*addr) - sizeof(addr->ip)];
	int len = attr ? nla_len(attr) : 0;

	*addr = (union nf_inet_addr){ };
	if (len != sizeof(addr->in6) && (len != sizeof(addr->ip) || af != AF_INET))
		return -EINVAL;
	memcpy(addr, nla_data(attr), len);
	return af == AF_INET && memcmp(&addr->ip6[1], padding, sizeof(padding)) ? -EINVAL : 0;
}

static int parse_snat(struct l4lb_snat_range *range, const struct nlattr *nest,
		      u8 af, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[L4LB_SNAT_ATTR_MAX + 1];
	int err;

	err = nla_parse_nested(tb, L4LB_SNAT_ATTR_MAX, nest, snat_policy, extack);
	if (err)
		return err;
	*range = (struct l4lb_snat_range){ };
	if (!tb[L4LB_SNAT_ATTR_FIRST] && !tb[L4LB_SNAT_ATTR_LAST])
		return 0;
	if (parse_address(&range->first, tb[L4LB_SNAT_ATTR_FIRST], af) ||
	    parse_address(&range->last, tb[L4LB_SNAT_ATTR_LAST], af)) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "policy: SNAT needs FIRST and LAST, addresses of the service's family");
		return -EINVAL;
	}
	range->af = af;
	return l4lb_snat_check(range, extack);
}

int l4lb_nl_parse_policy(struct l4lb_policy *policy, const struct nlattr *nest,
			 u8 af, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[L4LB_POLICY_ATTR_MAX + 1];
	unsigned int i;
	int err;

	if (!nest || !nla_len(nest)) {
		NL_SET_ERR_MSG(extack, "attribute POLICY is missing or empty");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, L4LB_POLICY_ATTR_MAX, nest, policy_policy,
			       extack);
	for (i = 1; !err && i <= L4LB_POLICY_ATTR_MAX; i++) {
		if (!tb[i] || !values[i].name)
			continue;
		*value_of(policy, i) = nla_get_u32(tb[i]);
		if (nla_get_u32(tb[i]) <= values[i].max)
			continue;
		l4lb_err_attr_fmt(extack, tb[i], "policy: %s must be 0 to %u",
				  values[i].name, values[i].max);
		err = -ERANGE;
	}
	if (!err && tb[L4LB_POLICY_ATTR_SNAT])
		err = parse_snat(&policy->snat, tb[L4LB_POLICY_ATTR_SNAT], af, extack);
	return err ?: l4lb_las_check(policy, extack) ?: check_conn_state(policy, extack);
}

/* Always there: a reader knows that the module has it. */
static int fill_snat(struct sk_buff *skb, const struct l4lb_snat_range *range)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_POLICY_ATTR_SNAT);
	int len = range->af == AF_INET ? sizeof(struct in_addr) :
					 sizeof(struct in6_addr);

	if (!nest || (range->af &&
		      (nla_put(skb, L4LB_SNAT_ATTR_FIRST, len, &range->first) ||
		       nla_put(skb, L4LB_SNAT_ATTR_LAST, len, &range->last))))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int l4lb_nl_fill_policy(struct sk_buff *skb, const struct l4lb_policy *policy)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_ATTR_POLICY);
	struct l4lb_policy copy = *policy;
	unsigned int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 1; i <= L4LB_POLICY_ATTR_MAX; i++)
		if (values[i].name && nla_put_u32(skb, i, *value_of(&copy, i)))
			return -EMSGSIZE;
	if (fill_snat(skb, &policy->snat))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int check_owner(const char *name, const struct nlattr *attr,
		       struct netlink_ext_ack *extack)
{
	for (; *name; name++) {
		if (isascii(*name) && (isalnum(*name) || strchr("._-@", *name)))
			continue;
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "owner: letters, digits and . _ - @ only");
		return -EINVAL;
	}
	return 0;
}

int l4lb_nl_parse_claim(struct l4lb_claim *claim, struct nlattr **attrs,
			struct netlink_ext_ack *extack)
{
	struct nlattr *owner = attrs[L4LB_ATTR_OWNER];

	if (attrs[L4LB_ATTR_PROTECTED])
		claim->protected = nla_get_u8(attrs[L4LB_ATTR_PROTECTED]);
	if (!owner)
		return 0;
	nla_strscpy(claim->owner, owner, sizeof(claim->owner));
	return check_owner(claim->owner, owner, extack);
}

int l4lb_nl_fill_claim(struct sk_buff *skb, const struct l4lb_claim *claim)
{
	if (claim->owner[0] &&
	    nla_put_string(skb, L4LB_ATTR_OWNER, claim->owner))
		return -EMSGSIZE;
	return claim->protected ?
	       nla_put_u8(skb, L4LB_ATTR_PROTECTED, 1) : 0;
}

/* Adds nothing for a service that has never had a limit. */
static int fill_limited(struct sk_buff *skb, const struct l4lb_service *svc)
{
	if (!svc->limit)
		return 0;
	return nla_put_u64_64bit(skb, L4LB_ATTR_LIMITED, l4lb_limit_refused(svc),
				 L4LB_ATTR_PAD);
}

/* Adds nothing for a service that has never had PRIORITY. */
static int fill_bands(struct sk_buff *skb, const struct l4lb_service *svc)
{
	struct l4lb_band band[L4LB_BANDS];
	struct nlattr *list, *nest;
	unsigned int i;

	if (!svc->bands)
		return 0;
	l4lb_las_read(svc, band);
	list = nla_nest_start(skb, L4LB_ATTR_BANDS);
	for (i = 0; list && i < L4LB_BANDS; i++) {
		nest = nla_nest_start(skb, 1);
		if (!nest ||
		    nla_put_u64_64bit(skb, L4LB_BAND_ATTR_PACKETS,
				      band[i].packets, L4LB_BAND_ATTR_PAD) ||
		    nla_put_u64_64bit(skb, L4LB_BAND_ATTR_BYTES,
				      band[i].bytes, L4LB_BAND_ATTR_PAD))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
	}
	if (!list)
		return -EMSGSIZE;
	nla_nest_end(skb, list);
	return 0;
}

int l4lb_nl_fill_policy_live(struct sk_buff *skb, const struct l4lb_service *svc)
{
	return fill_bands(skb, svc) ?: fill_limited(skb, svc);
}

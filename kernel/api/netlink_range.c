// SPDX-License-Identifier: GPL-2.0
/* Ranges of addresses and ports.  Each service has one name only: a range that is a single
 * address and port is refused.
 */
#include "api/netlink_range.h"

#include <linux/in.h>

#include "api/netlink_refuse.h"
#include "service/range.h"

const struct nla_policy l4lb_nl_range_policy[L4LB_RANGE_ATTR_MAX + 1] = {
	[L4LB_RANGE_ATTR_ADDR]	= NLA_POLICY_RANGE(NLA_BINARY,
						   sizeof(struct in_addr),
						   sizeof(struct in6_addr)),
	[L4LB_RANGE_ATTR_PREFIX_LEN] = NLA_POLICY_RANGE(NLA_U8, 1, 128),
	[L4LB_RANGE_ATTR_PORT]	= { .type = NLA_U16 },
	[L4LB_RANGE_ATTR_LAST_PORT] = { .type = NLA_U16 },
};

static int parse_addr(struct l4lb_svc_key *key, const struct nlattr *addr,
		      const struct nlattr *len, struct netlink_ext_ack *extack)
{
	unsigned int size = key->af == AF_INET ? sizeof(key->addr.ip) :
						 sizeof(key->addr.in6);

	if (nla_len(addr) != size && nla_len(addr) != sizeof(key->addr.in6))
		return l4lb_nl_refuse(extack, addr,
				      "range: the address must have 16 bytes, or 4 for IPv4");
	memcpy(&key->addr, nla_data(addr), size);
	key->prefix_len = nla_get_u8(len);
	if (key->prefix_len > size * BITS_PER_BYTE)
		return l4lb_nl_refuse(extack, len, "range: an IPv4 prefix has 32 bits at most");
	if (!l4lb_key_has_vip(key, key->af, &key->addr))
		return l4lb_nl_refuse(extack, addr,
				      "range: the address has bits after the prefix: they must be 0");
	return 0;
}

static int parse_ports(struct l4lb_svc_key *key, const struct nlattr *first,
		       const struct nlattr *last, struct netlink_ext_ack *extack)
{
	key->port = nla_get_be16(first);
	key->last_port = nla_get_be16(last);
	if (!key->port)
		return l4lb_nl_refuse(extack, first, "range: the ports must be 1 to 65535");
	if (ntohs(key->last_port) < ntohs(key->port))
		return l4lb_nl_refuse(extack, last,
				      "range: the last port must not be before the first one");
	if (key->port == key->last_port && !l4lb_key_has_vips(key))
		return l4lb_nl_refuse(extack, last,
				      "range: for a single address and port, use ADDR and PORT");
	return 0;
}

int l4lb_nl_parse_range(struct l4lb_svc_key *key, struct nlattr **tb,
			struct netlink_ext_ack *extack)
{
	const struct nlattr *nest = tb[L4LB_SVC_ATTR_RANGE];
	struct nlattr *range[L4LB_RANGE_ATTR_MAX + 1];
	unsigned int i;
	int err;

	if (tb[IPVS_SVC_ATTR_FWMARK] || tb[IPVS_SVC_ATTR_ADDR] || tb[IPVS_SVC_ATTR_PORT])
		return l4lb_nl_refuse(extack, nest,
				      "service: RANGE stands for ADDR and PORT, and goes without FWMARK");
	if (!tb[IPVS_SVC_ATTR_AF] || !tb[IPVS_SVC_ATTR_PROTOCOL])
		return l4lb_nl_refuse(extack, nest,
				      "service: attributes AF and PROTOCOL are needed with RANGE");
	key->af = min_t(u16, nla_get_u16(tb[IPVS_SVC_ATTR_AF]), U8_MAX);
	if (key->af != AF_INET && key->af != AF_INET6) {
		l4lb_nl_refuse(extack, tb[IPVS_SVC_ATTR_AF],
			       "service: family must be IPv4 (2) or IPv6 (10)");
		return -EAFNOSUPPORT;
	}
	key->protocol = nla_get_u16(tb[IPVS_SVC_ATTR_PROTOCOL]);
	if (key->protocol != IPPROTO_TCP && key->protocol != IPPROTO_UDP &&
	    key->protocol != IPPROTO_SCTP)
		return l4lb_nl_refuse(extack, tb[IPVS_SVC_ATTR_PROTOCOL],
				      "service: a range is for TCP (6), UDP (17) or SCTP (132)");
	err = nla_parse_nested(range, L4LB_RANGE_ATTR_MAX, nest, l4lb_nl_range_policy,
			       extack);
	if (err)
		return err;
	for (i = 1; i <= L4LB_RANGE_ATTR_MAX; i++)
		if (!range[i])
			return l4lb_nl_refuse(extack, nest,
					      "range: ADDR, PREFIX_LEN, PORT and LAST_PORT are needed");
	return parse_addr(key, range[L4LB_RANGE_ATTR_ADDR],
			  range[L4LB_RANGE_ATTR_PREFIX_LEN], extack) ?:
	       parse_ports(key, range[L4LB_RANGE_ATTR_PORT],
			   range[L4LB_RANGE_ATTR_LAST_PORT], extack);
}

int l4lb_nl_fill_range(struct sk_buff *skb, const struct l4lb_svc_key *key)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_SVC_ATTR_RANGE);

	if (!nest ||
	    nla_put(skb, L4LB_RANGE_ATTR_ADDR, sizeof(key->addr), &key->addr) ||
	    nla_put_u8(skb, L4LB_RANGE_ATTR_PREFIX_LEN, key->prefix_len) ||
	    nla_put_be16(skb, L4LB_RANGE_ATTR_PORT, key->port) ||
	    nla_put_be16(skb, L4LB_RANGE_ATTR_LAST_PORT, key->last_port))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

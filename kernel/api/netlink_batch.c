// SPDX-License-Identifier: GPL-2.0
/*
 * L4LB_CMD_SET_SERVICES: parsing a message into a batch.
 *
 * A message may have as many entries as the sender's socket buffer holds, so it
 * is walked, not parsed into a table.  genetlink has checked that all its
 * attributes are known to the command, but keeps only the last of each type.
 *
 * Each refusal points to the wrong entry or real server, or to an attribute in
 * it (NLMSGERR_ATTR_OFFS).  Where the kernel allows values in the sentence, it
 * also has the numbers of the service and the real server.
 */
#include "api/netlink_batch.h"

#include <net/netlink.h>

#include "api/netlink_l4lb.h"
#include "api/netlink_option.h"
#include "api/netlink_parse.h"
#include "api/netlink_policy.h"
#include "api/netlink_shadow.h"
#include "config/batch_check.h"

static const struct nla_policy service_policy[] = {
	[IPVS_SVC_ATTR_AF]	= { .type = NLA_U16 },
	[IPVS_SVC_ATTR_PROTOCOL] = { .type = NLA_U16 },
	[IPVS_SVC_ATTR_ADDR]	= NLA_POLICY_RANGE(NLA_BINARY,
						   sizeof(struct in_addr),
						   sizeof(struct in6_addr)),
	[IPVS_SVC_ATTR_PORT]	= { .type = NLA_U16 },
	[IPVS_SVC_ATTR_FWMARK]	= NLA_POLICY_MIN(NLA_U32, 1),
	[IPVS_SVC_ATTR_SCHED_NAME] = { .type = NLA_NUL_STRING,
				       .len = IP_VS_SCHEDNAME_MAXLEN - 1 },
	[IPVS_SVC_ATTR_FLAGS]	= NLA_POLICY_EXACT_LEN(sizeof(struct ip_vs_flags)),
	[IPVS_SVC_ATTR_TIMEOUT]	= { .type = NLA_U32 },
	[IPVS_SVC_ATTR_NETMASK]	= { .type = NLA_U32 },
	/* Refused with a sentence. */
	[IPVS_SVC_ATTR_PE_NAME]	= { .type = NLA_NUL_STRING,
				    .len = IP_VS_PENAME_MAXLEN - 1 },
	[L4LB_SVC_ATTR_RANGE]	= { .type = NLA_NESTED },
};

static const struct nla_policy dest_policy[] = {
	[IPVS_DEST_ATTR_ADDR]	= NLA_POLICY_RANGE(NLA_BINARY,
						   sizeof(struct in_addr),
						   sizeof(struct in6_addr)),
	[IPVS_DEST_ATTR_PORT]	= { .type = NLA_U16 },
	[IPVS_DEST_ATTR_FWD_METHOD] = NLA_POLICY_MAX(NLA_U32,
						     IP_VS_CONN_F_BYPASS),
	[IPVS_DEST_ATTR_WEIGHT]	= { .type = NLA_U32 },
	[IPVS_DEST_ATTR_U_THRESH] = { .type = NLA_U32 },
	[IPVS_DEST_ATTR_L_THRESH] = { .type = NLA_U32 },
	[IPVS_DEST_ATTR_ADDR_FAMILY] = { .type = NLA_U16 },
	[IPVS_DEST_ATTR_TUN_TYPE] = NLA_POLICY_MAX(NLA_U8,
						   IP_VS_CONN_F_TUNNEL_TYPE_MAX - 1),
	[IPVS_DEST_ATTR_TUN_PORT] = { .type = NLA_U16 },
	[IPVS_DEST_ATTR_TUN_FLAGS] = { .type = NLA_U16 },
};

static const struct nla_policy entry_policy[] = {
	[L4LB_ATTR_SERVICE]	= NLA_POLICY_NESTED(service_policy),
	[L4LB_ATTR_OPTIONS]	= { .type = NLA_NESTED },
	[L4LB_ATTR_POLICY]	= { .type = NLA_NESTED },
	[L4LB_ATTR_DESTS]	= { .type = NLA_NESTED },
	[L4LB_ATTR_EXACT]	= { .type = NLA_FLAG },
	[L4LB_ATTR_REMOVE]	= { .type = NLA_FLAG },
	[L4LB_ATTR_OWNER]	= { .type = NLA_NUL_STRING,
				    .len = L4LB_OWNER_LEN - 1 },
	[L4LB_ATTR_PROTECTED]	= NLA_POLICY_MAX(NLA_U8, 1),
	[L4LB_ATTR_SHADOW]	= { .type = NLA_NUL_STRING,
				    .len = L4LB_NAME_LEN - 1 },
};

static const struct nla_policy timeouts_policy[] = {
	[L4LB_TIMEOUTS_ATTR_TCP]	= { .type = NLA_U32 },
	[L4LB_TIMEOUTS_ATTR_TCP_FIN]	= { .type = NLA_U32 },
	[L4LB_TIMEOUTS_ATTR_UDP]	= { .type = NLA_U32 },
};

enum {
	DEST_ATTR_MAX		= ARRAY_SIZE(dest_policy) - 1,
	ENTRY_ATTR_MAX		= ARRAY_SIZE(entry_policy) - 1,
	SERVICE_ATTR_MAX	= ARRAY_SIZE(service_policy) - 1,
};

/* Upper bounds of the numbers of services and real servers, for allocation. */
static int count(struct genl_info *info, unsigned int *n_services,
		 unsigned int *n_servers)
{
	const struct nlattr *entry, *attr, *dest;
	int left, left_attr, left_dest;

	*n_services = 0;
	*n_servers = 0;
	nlmsg_for_each_attr(entry, info->nlhdr, GENL_HDRLEN, left) {
		if (nla_type(entry) != L4LB_ATTR_ENTRY)
			continue;
		(*n_services)++;
		nla_for_each_nested(attr, entry, left_attr) {
			if (nla_type(attr) != L4LB_ATTR_DESTS)
				continue;
			nla_for_each_nested(dest, attr, left_dest)
				(*n_servers)++;
		}
	}
	if (*n_services <= L4LB_SERVICES_MAX && *n_servers <= L4LB_DESTS_MAX)
		return 0;
	NL_SET_ERR_MSG(info->extack,
		       "too much for one message: 65536 entries and 1048576 real servers at most");
	return -E2BIG;
}

/* Unlike family IPVS, this family is strict about the length of addresses. */
static int check_addr(const struct nlattr *addr, u16 af,
		      struct netlink_ext_ack *extack)
{
	if (nla_len(addr) == sizeof(struct in6_addr) ||
	    (af == AF_INET && nla_len(addr) == sizeof(struct in_addr)))
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, addr,
			    "the address must have 16 bytes, or 4 for IPv4");
	return -EINVAL;
}

int l4lb_nl_parse_ext_dest(struct l4lb_server_config *cfg, u16 svc_af,
			   const struct nlattr *nest, bool whole,
			   struct netlink_ext_ack *extack)
{
	struct nlattr *tb[DEST_ATTR_MAX + 1];
	int err;

	err = nla_parse_nested(tb, DEST_ATTR_MAX, nest, dest_policy, extack);
	if (!err)
		err = l4lb_nl_parse_dest(cfg, svc_af, nest, whole, extack);
	if (!err)
		err = check_addr(tb[IPVS_DEST_ATTR_ADDR], cfg->af, extack);
	return err;
}

static int parse_dest(struct l4lb_batch_server *d, u16 svc_af,
		      const struct nlattr *nest,
		      struct netlink_ext_ack *extack)
{
	d->where = nest;
	return l4lb_nl_parse_ext_dest(&d->cfg, svc_af, nest, true, extack);
}

static int parse_dests(struct l4lb_batch *b, struct l4lb_batch_service *svc,
		       const struct nlattr *list,
		       struct netlink_ext_ack *extack)
{
	const struct nlattr *nest;
	int left, err;

	if (!list)
		return 0;
	nla_for_each_nested(nest, list, left) {
		b->at_server = svc->n;
		err = parse_dest(&b->servers[b->n_servers], svc->key.af, nest,
				 extack);
		if (err)
			return err;
		b->n_servers++;
		svc->n++;
	}
	b->at_server = -1;
	if (!left)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, list,
			    "the list of real servers is cut off");
	return -EINVAL;
}

static int parse_options(struct l4lb_batch_service *svc,
			 const struct nlattr *list,
			 struct netlink_ext_ack *extack)
{
	const struct nlattr *nest;
	int left, err;

	if (!list)
		return 0;
	nla_for_each_nested(nest, list, left) {
		err = l4lb_nl_parse_option(svc->ops, &svc->values, &svc->set,
					   nest, extack);
		if (err)
			return err;
	}
	if (!left)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, list, "the list of options is cut off");
	return -EINVAL;
}

/* The next service of the batch.  It is counted as soon as it holds a
 * reference, which l4lb_batch_free() then drops.
 */
static int parse_service(struct l4lb_batch *b, struct nlattr **tb,
			 const struct l4lb_svc_key *key,
			 struct netlink_ext_ack *extack)
{
	struct l4lb_batch_service *svc = &b->services[b->n_services];
	struct l4lb_nl_service parsed;
	int err;

	svc->first = b->n_servers;
	svc->exact = tb[L4LB_ATTR_EXACT];
	err = l4lb_nl_parse_settings(&parsed, key, tb[L4LB_ATTR_SERVICE],
				     extack) ?:
	      l4lb_nl_resolve(&parsed, &svc->ops, extack);
	if (err)
		return err;
	b->n_services++;
	svc->key = parsed.key;
	svc->cfg = parsed.cfg;
	svc->mask = parsed.mask;
	err = parse_options(svc, tb[L4LB_ATTR_OPTIONS], extack);
	if (!err && tb[L4LB_ATTR_POLICY])
		err = l4lb_nl_parse_policy(&svc->policy, tb[L4LB_ATTR_POLICY],
					   svc->key.af, extack);
	return err ?: l4lb_nl_parse_claim(&svc->claim, tb, extack) ?:
	       l4lb_nl_parse_shadow(&svc->shadow_ops, tb[L4LB_ATTR_SHADOW], extack) ?:
	       parse_dests(b, svc, tb[L4LB_ATTR_DESTS], extack);
}

/* Of the service, beside those in SERVICE. */
static bool has_settings(struct nlattr **tb)
{
	return tb[L4LB_ATTR_OPTIONS] || tb[L4LB_ATTR_POLICY] ||
	       tb[L4LB_ATTR_EXACT] || tb[L4LB_ATTR_OWNER] ||
	       tb[L4LB_ATTR_PROTECTED] || tb[L4LB_ATTR_SHADOW];
}

/* Such an entry names a service, and nothing of it. */
static int parse_removal(struct l4lb_batch *b, struct nlattr **tb,
			 const struct l4lb_svc_key *key,
			 struct netlink_ext_ack *extack)
{
	struct l4lb_batch_service *svc = &b->services[b->n_services];

	if (b->mode == L4LB_SET_ADD || b->mode == L4LB_SET_REPLACE) {
		NL_SET_ERR_MSG_ATTR(extack, tb[L4LB_ATTR_REMOVE],
				    "REMOVE is for MODE MERGE and CHANGE");
		return -EINVAL;
	}
	if (has_settings(tb) ||
	    (tb[L4LB_ATTR_DESTS] && nla_len(tb[L4LB_ATTR_DESTS]))) {
		NL_SET_ERR_MSG_ATTR(extack, tb[L4LB_ATTR_REMOVE],
				    "a service that is removed can have no settings and real servers");
		return -EINVAL;
	}
	svc->first = b->n_servers;
	svc->key = *key;
	svc->remove = true;
	b->n_services++;
	return 0;
}

/* Does this entry continue the real servers of the one before?  A service may
 * have more of them than an attribute can hold.
 */
static bool continues(const struct l4lb_batch *b, struct nlattr **tb,
		      struct nlattr **service, const struct l4lb_svc_key *key)
{
	const struct l4lb_batch_service *last;

	if (!b->n_services || has_settings(tb) ||
	    service[IPVS_SVC_ATTR_SCHED_NAME])
		return false;
	last = &b->services[b->n_services - 1];
	return !last->remove && !memcmp(&last->key, key, sizeof(*key));
}

static int parse_entry(struct l4lb_batch *b, const struct nlattr *entry,
		       struct netlink_ext_ack *extack)
{
	struct nlattr *service[SERVICE_ATTR_MAX + 1];
	struct nlattr *tb[ENTRY_ATTR_MAX + 1];
	struct l4lb_svc_key key = { };
	int err;

	b->at_service = b->n_services;
	b->at_server = -1;
	b->services[b->at_service].where = entry;
	err = nla_parse_nested(tb, ENTRY_ATTR_MAX, entry, entry_policy, extack);
	if (err)
		return err;
	if (!tb[L4LB_ATTR_SERVICE]) {
		NL_SET_ERR_MSG_ATTR(extack, entry,
				    "entry: attribute SERVICE is missing");
		return -EINVAL;
	}
	err = nla_parse_nested(service, SERVICE_ATTR_MAX,
			       tb[L4LB_ATTR_SERVICE], service_policy, extack) ?:
	      l4lb_nl_parse_ext_key(&key, service, tb[L4LB_ATTR_SERVICE],
				    extack);
	if (err)
		return err;
	if (tb[L4LB_ATTR_REMOVE])
		return parse_removal(b, tb, &key, extack);
	if (!continues(b, tb, service, &key))
		return parse_service(b, tb, &key, extack);
	b->at_service--;
	return parse_dests(b, &b->services[b->n_services - 1],
			   tb[L4LB_ATTR_DESTS], extack);
}

static int parse_timeouts(struct l4lb_batch *b, const struct nlattr *nest,
			  struct netlink_ext_ack *extack)
{
	struct nlattr *tb[L4LB_TIMEOUTS_ATTR_MAX + 1];
	int err;

	if (!nest)
		return 0;
	err = nla_parse_nested(tb, L4LB_TIMEOUTS_ATTR_MAX, nest, timeouts_policy, extack);
	return err ?: l4lb_nl_parse_timeouts(&b->timeouts, tb[L4LB_TIMEOUTS_ATTR_TCP],
					     tb[L4LB_TIMEOUTS_ATTR_TCP_FIN],
					     tb[L4LB_TIMEOUTS_ATTR_UDP], extack);
}

static int parse_entries(struct l4lb_batch *b, struct genl_info *info)
{
	const struct nlattr *entry;
	int left, err;

	nlmsg_for_each_attr(entry, info->nlhdr, GENL_HDRLEN, left) {
		if (nla_type(entry) != L4LB_ATTR_ENTRY)
			continue;
		err = parse_entry(b, entry, info->extack);
		if (err)
			return err;
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/* Point at @nest unless the failed check pointed at an attribute in it. */
static void say_where(const struct l4lb_batch *b, const struct nlattr *nest,
		      struct netlink_ext_ack *extack)
{
	if (!extack)
		return;
	if (nest && (!extack->bad_attr || extack->bad_attr < nest ||
		     (void *)extack->bad_attr >= (void *)nest + nest->nla_len))
		NL_SET_BAD_ATTR(extack, nest);
	if (b->at_server < 0)
		l4lb_err_before(extack, "service %u: ", b->at_service + 1);
	else
		l4lb_err_before(extack, "service %u, server %u: ",
				b->at_service + 1, b->at_server + 1);
}

/* The attribute of the service or real server that @b is at. */
static const struct nlattr *where(const struct l4lb_batch *b)
{
	const struct l4lb_batch_service *svc = &b->services[b->at_service];

	return b->at_server < 0 ? svc->where :
	       b->servers[svc->first + b->at_server].where;
}

int l4lb_nl_set_services(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	unsigned int n_services, n_servers;
	u32 mode = L4LB_SET_MERGE;
	struct l4lb_batch b;
	int err;

	err = count(info, &n_services, &n_servers);
	if (err)
		return err;
	if (info->attrs[L4LB_ATTR_MODE])
		mode = nla_get_u32(info->attrs[L4LB_ATTR_MODE]);
	/* REPLACE without entries is valid: it deletes everything. */
	if (!n_services && mode != L4LB_SET_REPLACE && !info->attrs[L4LB_ATTR_TIMEOUTS]) {
		NL_SET_ERR_MSG(info->extack, "attribute ENTRY is missing");
		return -EINVAL;
	}
	err = l4lb_batch_alloc(&b, n_services, n_servers);
	if (err) {
		NL_SET_ERR_MSG(info->extack, "no memory for the batch");
		return err;
	}
	b.mode = mode;
	b.knows_ranges = info->attrs[L4LB_ATTR_RANGES];
	b.at_service = n_services;
	err = parse_timeouts(&b, info->attrs[L4LB_ATTR_TIMEOUTS], info->extack) ?:
	      parse_entries(&b, info) ?: l4lb_batch_check(&b, info->extack);
	if (!err) {
		mutex_lock(&ln->lock);
		err = l4lb_batch_apply(ln, &b, info->extack);
		mutex_unlock(&ln->lock);
	}
	if (err && b.at_service < n_services)
		say_where(&b, where(&b), info->extack);
	l4lb_batch_free(&b);
	return err;
}

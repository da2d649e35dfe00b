// SPDX-License-Identifier: GPL-2.0
/*
 * L4LB_CMD_GET_SERVICES: services with all their settings and real servers, in
 * the format of SET_SERVICES.
 *
 * One dump lists everything; family IPVS needs one dump per service.  A service
 * whose real servers do not all fit continues in the next message.  If the
 * configuration changes meanwhile, the dump says so (NLM_F_DUMP_INTR).
 */
#include "api/netlink_list.h"

#include <net/netlink.h>

#include "api/netlink_fill.h"
#include "api/netlink_l4lb.h"
#include "api/netlink_parse.h"
#include "api/netlink_policy.h"
#include "api/netlink_shadow.h"
#include "service/range.h"
#include "service/sched_default.h"

/* Position of a dump: the service, and how many of its servers are listed. */
struct position {
	struct l4lb_nl_cursor	cursor;
	unsigned int		server;
};

/**
 * struct filter - which services a dump lists: those whose key has the attributes in @tb
 * @tb: of SERVICE
 * @key: with @by_range
 * @by_range: only the service with this range
 * @ranges: services with a range, too
 * @live: with counters
 */
struct filter {
	struct nlattr	*tb[L4LB_SVC_ATTR_RANGE + 1];
	struct l4lb_svc_key key;
	bool		by_range, ranges, live;
};

static int parse_filter(struct filter *f, struct netlink_callback *cb)
{
	struct nlattr **attrs = l4lb_dump_attrs(cb);
	const struct nlattr *service = attrs[L4LB_ATTR_SERVICE];
	int err;

	memset(f, 0, sizeof(*f));
	f->live = attrs[L4LB_ATTR_LIVE];
	f->ranges = attrs[L4LB_ATTR_RANGES];
	if (!service)
		return 0;
	err = nla_parse_nested(f->tb, L4LB_SVC_ATTR_RANGE, service,
			       l4lb_nl_key_policy, cb->extack);
	f->by_range = !err && f->tb[L4LB_SVC_ATTR_RANGE] &&
		      nla_len(f->tb[L4LB_SVC_ATTR_RANGE]);
	if (f->by_range)
		err = l4lb_nl_parse_ext_key(&f->key, f->tb, service, cb->extack);
	return err;
}

static bool same_addr(const struct l4lb_svc_key *key, const struct nlattr *addr)
{
	unsigned int len = key->af == AF_INET ? sizeof(key->addr.ip) :
			   sizeof(key->addr.in6);

	return nla_len(addr) >= len && !memcmp(&key->addr, nla_data(addr), len);
}

static bool passes(const struct filter *f, const struct l4lb_svc_key *key)
{
	struct nlattr *const *tb = f->tb;
	bool is_range = l4lb_key_is_range(key);

	if (f->by_range && memcmp(&f->key, key, sizeof(*key)))
		return false;
	if (is_range ? !f->ranges && !tb[L4LB_SVC_ATTR_RANGE] : !!tb[L4LB_SVC_ATTR_RANGE])
		return false;
	/* It has many addresses and ports, and is named by none of them. */
	if (is_range && (tb[IPVS_SVC_ATTR_ADDR] || tb[IPVS_SVC_ATTR_PORT]))
		return false;
	if (tb[IPVS_SVC_ATTR_AF] &&
	    nla_get_u16(tb[IPVS_SVC_ATTR_AF]) != key->af)
		return false;
	if (tb[IPVS_SVC_ATTR_FWMARK] &&
	    nla_get_u32(tb[IPVS_SVC_ATTR_FWMARK]) != key->fwmark)
		return false;
	if (tb[IPVS_SVC_ATTR_PROTOCOL] &&
	    nla_get_u16(tb[IPVS_SVC_ATTR_PROTOCOL]) != key->protocol)
		return false;
	if (tb[IPVS_SVC_ATTR_PORT] &&
	    (key->fwmark || nla_get_be16(tb[IPVS_SVC_ATTR_PORT]) != key->port))
		return false;
	return !tb[IPVS_SVC_ATTR_ADDR] ||
	       (!key->fwmark && same_addr(key, tb[IPVS_SVC_ATTR_ADDR]));
}

/* Options whose value differs from the namespace's default. */
static int fill_options(struct sk_buff *skb, const struct l4lb_service *svc)
{
	const struct l4lb_sched_ops *ops = l4lb_service_sched(svc);
	const u32 *value = l4lb_service_options(svc);
	struct nlattr *list, *nest;
	unsigned int i, n = 0;

	list = nla_nest_start(skb, L4LB_ATTR_OPTIONS);
	if (!list)
		return -EMSGSIZE;
	for (i = 0; ops && i < ops->n_options; i++) {
		if (value[i] == l4lb_sched_default(svc->ln, ops, i))
			continue;
		nest = nla_nest_start(skb, 1);
		if (!nest ||
		    nla_put_string(skb, L4LB_OPTION_ATTR_NAME,
				   ops->options[i].name) ||
		    nla_put_u32(skb, L4LB_OPTION_ATTR_VALUE, value[i]) ||
		    (ops->options[i].file &&
		     nla_put_string(skb, L4LB_OPTION_ATTR_PATH, l4lb_service_path(svc))))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
		n++;
	}
	if (n)
		nla_nest_end(skb, list);
	else
		nla_nest_cancel(skb, list);
	return 0;
}

/* @all: the first message of a service; later ones have only its key. */
static int fill_head(struct sk_buff *skb, struct l4lb_service *svc,
		     const struct filter *f, bool all)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_ATTR_SERVICE);

	if (!nest || l4lb_nl_fill_key(skb, &svc->key))
		return -EMSGSIZE;
	if (all && (l4lb_nl_fill_service_config(skb, svc) ||
		    (f->live && l4lb_nl_fill_service_stats64(skb, svc))))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	if (!all)
		return 0;
	if (fill_options(skb, svc) || l4lb_nl_fill_claim(skb, &svc->claim) ||
	    l4lb_nl_fill_shadow(skb, svc) ||
	    (f->live && l4lb_nl_fill_shadow_live(skb, svc)))
		return -EMSGSIZE;
	if (!memchr_inv(&svc->policy, 0, sizeof(svc->policy)))
		return 0;
	return l4lb_nl_fill_policy(skb, &svc->policy) ?:
	       (f->live ? l4lb_nl_fill_policy_live(skb, svc) : 0);
}

static int fill_dest(struct sk_buff *skb, struct l4lb_server *server,
		     const struct filter *f)
{
	struct nlattr *nest = nla_nest_start(skb, 1);

	if (!nest)
		return -EMSGSIZE;
	if (l4lb_nl_fill_dest_config(skb, server) ||
	    (f->live && l4lb_nl_fill_dest_live(skb, server))) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* Oldest first, so that they can be added again in this order.  -EMSGSIZE if
 * not all fit; *@next is the index of the first one that does not.
 */
static int fill_dests(struct sk_buff *skb, struct l4lb_service *svc,
		      const struct filter *f, unsigned int *next)
{
	struct nlattr *list = nla_nest_start(skb, L4LB_ATTR_DESTS);
	struct l4lb_server *server;
	unsigned int i = 0;
	int err = 0;

	if (!list)
		return -EMSGSIZE;
	list_for_each_entry(server, &svc->servers, node) {
		if (i++ < *next)
			continue;
		err = fill_dest(skb, server, f);
		if (err)
			break;
		*next = i;
	}
	nla_nest_end(skb, list);
	return err;
}

/* Fill one message.  -EMSGSIZE if the service needs another one. */
static int dump_one(struct sk_buff *skb, struct netlink_callback *cb,
		    struct l4lb_service *svc, const struct filter *f,
		    unsigned int *next)
{
	unsigned int first = *next;
	struct nlattr *entry;
	void *hdr;
	int err;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &l4lb_ext_family, NLM_F_MULTI, L4LB_CMD_GET_SERVICES);
	if (!hdr)
		return -EMSGSIZE;
	genl_dump_check_consistent(cb, hdr);
	entry = nla_nest_start(skb, L4LB_ATTR_ENTRY);
	err = entry ? fill_head(skb, svc, f, !first) : -EMSGSIZE;
	if (!err)
		err = fill_dests(skb, svc, f, next);
	/* Not even one server fits: begin in the next buffer instead. */
	if (err && *next == first) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, entry);
	genlmsg_end(skb, hdr);
	return err;
}

static void dump_all(struct sk_buff *skb, struct netlink_callback *cb,
		     struct l4lb_net *ln, const struct filter *f)
{
	struct position *pos = (void *)cb->ctx;
	struct l4lb_nl_cursor *cursor = &pos->cursor;
	struct l4lb_service *svc = l4lb_nl_cursor_service(ln, cursor);

	if (!svc)
		return;
	/* The service is gone; this is the one now at its index. */
	if (memcmp(&svc->key, &cursor->key, sizeof(svc->key)))
		pos->server = 0;
	list_for_each_entry_from(svc, &ln->services, list) {
		cursor->key = svc->key;
		if (passes(f, &svc->key) &&
		    dump_one(skb, cb, svc, f, &pos->server))
			return;
		cursor->index++;
		pos->server = 0;
	}
	l4lb_nl_cursor_end(cursor);
}

int l4lb_nl_dump_services(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(skb, cb->extack);
	struct filter f;
	int err;

	BUILD_BUG_ON(sizeof(struct position) > sizeof(cb->ctx));

	if (!ln)
		return -EAGAIN;
	err = parse_filter(&f, cb);
	if (err)
		return err;
	mutex_lock(&ln->lock);
	cb->seq = ln->generation;
	dump_all(skb, cb, ln, &f);
	mutex_unlock(&ln->lock);
	return skb->len;
}

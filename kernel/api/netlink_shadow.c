// SPDX-License-Identifier: GPL-2.0
/*
 * The attribute SHADOW, and L4LB_CMD_GET_SHADOW: what a service's shadow has counted.
 *
 * Pools of service and shadow are in the same order, so a dump goes on where it was by
 * an index.  If the configuration changes meanwhile, it says so (NLM_F_DUMP_INTR).
 */
#include "api/netlink_shadow.h"

#include <linux/jiffies.h>
#include <net/netlink.h>

#include "api/netlink_l4lb.h"
#include "api/netlink_parse.h"
#include "service/registry.h"
#include "service/shadow.h"

/* ---- the attribute ---- */

const struct l4lb_sched_ops *l4lb_nl_get_scheduler(const struct nlattr *name,
						   struct netlink_ext_ack *extack)
{
	const struct l4lb_sched_ops *ops;
	char text[L4LB_NAME_LEN];

	nla_strscpy(text, name, sizeof(text));
	ops = l4lb_sched_get(text);
	if (!ops)
		l4lb_err_attr_str(extack, name,
				  "no such scheduler, and no module l4lb_NAME",
				  text);
	return ops;
}

int l4lb_nl_parse_shadow(const struct l4lb_sched_ops **ops, const struct nlattr *attr,
			 struct netlink_ext_ack *extack)
{
	*ops = NULL;
	if (!attr || !nla_strcmp(attr, "none"))
		return 0;
	*ops = l4lb_nl_get_scheduler(attr, extack);
	return *ops ? 0 : -ENOENT;
}

int l4lb_nl_fill_shadow(struct sk_buff *skb, const struct l4lb_service *svc)
{
	const struct l4lb_sched_ops *ops = l4lb_shadow_sched(svc);

	return ops ? nla_put_string(skb, L4LB_ATTR_SHADOW, ops->name) : 0;
}

/* ---- counters ---- */

/**
 * struct position - of a dump
 * @key: the service
 * @next: index of the real server that is to be listed next
 * @begun: the first message was sent
 */
struct position {
	struct l4lb_svc_key	key;
	unsigned int		next;
	bool			begun;
};

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, L4LB_SHADOW_ATTR_PAD);
}

static int fill_total(struct sk_buff *skb, const struct l4lb_shadow *shadow)
{
	u64 age = jiffies64_to_msecs(get_jiffies_64() - shadow->since);

	return nla_put_string(skb, L4LB_SHADOW_ATTR_SCHEDULER, shadow->ops->name) ?:
	       put_u64(skb, L4LB_SHADOW_ATTR_AGE, age) ?:
	       put_u64(skb, L4LB_SHADOW_ATTR_SEEN,
		       l4lb_shadow_count(shadow, L4LB_SHADOW_SEEN)) ?:
	       put_u64(skb, L4LB_SHADOW_ATTR_AGREED,
		       l4lb_shadow_count(shadow, L4LB_SHADOW_AGREED)) ?:
	       put_u64(skb, L4LB_SHADOW_ATTR_REFUSED,
		       l4lb_shadow_count(shadow, L4LB_SHADOW_REFUSED));
}

int l4lb_nl_fill_shadow_live(struct sk_buff *skb, const struct l4lb_service *svc)
{
	const struct l4lb_shadow *shadow = l4lb_shadow_current(svc);
	struct nlattr *nest;

	if (!shadow)
		return 0;
	nest = nla_nest_start(skb, L4LB_ATTR_SHADOW_STATS);
	if (!nest || fill_total(skb, shadow))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int fill_name(struct sk_buff *skb, const struct l4lb_sched_server *d)
{
	return nla_put(skb, L4LB_SHADOW_SERVER_ATTR_ADDR, sizeof(d->addr), &d->addr) ?:
	       nla_put_be16(skb, L4LB_SHADOW_SERVER_ATTR_PORT, d->port) ?:
	       nla_put_u16(skb, L4LB_SHADOW_SERVER_ATTR_AF, d->af) ?:
	       nla_put_u32(skb, L4LB_SHADOW_SERVER_ATTR_WEIGHT, d->weight);
}

/* @attr: of the active ones; the next is that of the others. */
static int fill_conns(struct sk_buff *skb, int attr, const struct l4lb_sched_server *d)
{
	int active = atomic_read(&d->active), total = atomic_read(&d->total);

	/* Not read atomically: active may exceed total for a moment. */
	return nla_put_u32(skb, attr, active) ?:
	       nla_put_u32(skb, attr + 1, max(total - active, 0));
}

static int fill_server(struct sk_buff *skb, const struct l4lb_sched_server *real,
		       const struct l4lb_sched_server *ghost)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_SHADOW_ATTR_SERVER);
	struct l4lb_stats_view view;

	l4lb_stats_read(&l4lb_server_of(ghost)->stats, &view);
	if (!nest || fill_name(skb, real) ||
	    nla_put_u64_64bit(skb, L4LB_SHADOW_SERVER_ATTR_CONNS, view.count.conns,
			      L4LB_SHADOW_SERVER_ATTR_PAD) ||
	    fill_conns(skb, L4LB_SHADOW_SERVER_ATTR_ACTIVE_CONNS, ghost) ||
	    nla_put_u64_64bit(skb, L4LB_SHADOW_SERVER_ATTR_REAL_CONNS,
			      view.count.inpkts, L4LB_SHADOW_SERVER_ATTR_PAD) ||
	    fill_conns(skb, L4LB_SHADOW_SERVER_ATTR_REAL_ACTIVE_CONNS, real))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* What the shadow's scheduler itself counts. */
static int fill_counts(struct sk_buff *skb, const struct l4lb_shadow *shadow)
{
	const struct l4lb_sched_option *o = shadow->ops->options;
	struct nlattr *nest;
	unsigned int i;

	for (i = 0; i < shadow->ops->n_options; i++) {
		if (!o[i].count)
			continue;
		nest = nla_nest_start(skb, L4LB_SHADOW_ATTR_OPTION);
		if (!nest || nla_put_string(skb, L4LB_OPTION_ATTR_NAME, o[i].name) ||
		    nla_put_u32(skb, L4LB_OPTION_ATTR_VALUE,
				l4lb_inst_option(shadow->inst, i)) ||
		    nla_put_string(skb, L4LB_OPTION_ATTR_WHAT, o[i].what) ||
		    nla_put_flag(skb, L4LB_OPTION_ATTR_COUNT))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
	}
	return 0;
}

/* The next message: the total, or one real server. */
static int fill_next(struct sk_buff *skb, const struct l4lb_service *svc,
		     const struct l4lb_shadow *shadow, const struct position *pos)
{
	const struct l4lb_pool *ghosts;

	if (!pos->begun)
		return fill_total(skb, shadow) ?: fill_counts(skb, shadow);
	ghosts = rcu_dereference_protected(shadow->pool,
					   lockdep_is_held(&svc->ln->lock));
	return fill_server(skb, l4lb_pool_current(svc)->server[pos->next],
			   ghosts->server[pos->next]);
}

static int put_next(struct sk_buff *skb, struct netlink_callback *cb,
		    const struct l4lb_service *svc,
		    const struct l4lb_shadow *shadow)
{
	struct nlattr *nest;
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &l4lb_ext_family, NLM_F_MULTI, L4LB_CMD_GET_SHADOW);
	if (!hdr)
		return -EMSGSIZE;
	genl_dump_check_consistent(cb, hdr);
	nest = nla_nest_start(skb, L4LB_ATTR_SHADOW_STATS);
	if (!nest || fill_next(skb, svc, shadow, (void *)cb->ctx)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	genlmsg_end(skb, hdr);
	return 0;
}

static void put_some(struct sk_buff *skb, struct netlink_callback *cb,
		     const struct l4lb_service *svc,
		     const struct l4lb_shadow *shadow)
{
	struct position *pos = (void *)cb->ctx;

	if (!pos->begun && !put_next(skb, cb, svc, shadow))
		pos->begun = true;
	while (pos->begun && pos->next < l4lb_pool_current(svc)->n &&
	       !put_next(skb, cb, svc, shadow))
		pos->next++;
}

static int check(struct l4lb_net *ln, const struct l4lb_svc_key *key,
		 struct netlink_ext_ack *extack)
{
	struct l4lb_service *svc;
	int err = 0;

	mutex_lock(&ln->lock);
	svc = l4lb_service_find(ln, key);
	if (!svc) {
		NL_SET_ERR_MSG(extack,
			       "there is no such service: add it, with family IPVS");
		err = -ESRCH;
	} else if (!l4lb_shadow_sched(svc)) {
		NL_SET_ERR_MSG(extack, "the service has no shadow: set one with SET_POLICY");
		err = -ENOENT;
	}
	mutex_unlock(&ln->lock);
	return err;
}

int l4lb_nl_start_shadow(struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(cb->skb, cb->extack);
	struct position *pos = (void *)cb->ctx;
	int err;

	BUILD_BUG_ON(sizeof(*pos) > sizeof(cb->ctx));

	if (!ln)
		return -EAGAIN;
	err = l4lb_nl_parse_service_name(&pos->key, l4lb_dump_attrs(cb), cb->extack);
	return err ?: check(ln, &pos->key, cb->extack);
}

/* Ends early if the service or its shadow has gone meanwhile. */
int l4lb_nl_dump_shadow(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(skb, cb->extack);
	const struct position *pos = (void *)cb->ctx;
	const struct l4lb_shadow *shadow;
	struct l4lb_service *svc;

	if (!ln)
		return -EAGAIN;
	mutex_lock(&ln->lock);
	cb->seq = ln->generation;
	svc = l4lb_service_find(ln, &pos->key);
	shadow = svc ? l4lb_shadow_current(svc) : NULL;
	if (shadow)
		put_some(skb, cb, svc, shadow);
	mutex_unlock(&ln->lock);
	return skb->len;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink family "IPVS": what ipvsadm, keepalived and kube-proxy
 * speak.  One function per command.
 *
 * A command parses its request, takes the configuration mutex of the caller's
 * namespace, looks up the service and calls functions of config/.  The order of
 * its checks decides which error a wrong request gets, and clients act on the
 * number: do not reorder them.  Each refusal also has a sentence for people.
 *
 * Namespaces do not wait for each other (parallel_ops), and scheduler modules
 * are not loaded under the mutex.
 */
#include "api/netlink_ipvs.h"

#include <net/netlink.h>

#include "api/netlink_fill.h"
#include "api/netlink_parse.h"
#include "api/netlink_sync.h"
#include "config/edit.h"
#include "config/policy.h"
#include "config/server_edit.h"
#include "service/range.h"
#include "service/registry.h"

static struct genl_family ipvs_family;

static struct l4lb_service *find_service(struct l4lb_net *ln,
					 const struct l4lb_nl_service *svc,
					 struct genl_info *info)
{
	struct l4lb_service *found = l4lb_service_find(ln, &svc->key);

	if (!found)
		NL_SET_ERR_MSG_ATTR(info->extack,
				    info->attrs[IPVS_CMD_ATTR_SERVICE],
				    "there is no such service");
	return found;
}

/* Services: NEW, SET, DEL */

/* Only the flags in @svc->mask change.  The kernel always sets "hashed",
 * because clients test for it.
 */
static void merge_flags(struct l4lb_nl_service *svc, u32 old)
{
	svc->cfg.flags = (old & ~svc->mask) | (svc->cfg.flags & svc->mask) |
			 IP_VS_SVC_F_HASHED;
}

/* -EEXIST if it exists.  Configuration mutex held. */
static int check_absent(struct l4lb_net *ln, const struct l4lb_nl_service *svc,
			struct genl_info *info)
{
	lockdep_assert_held(&ln->lock);

	if (!l4lb_service_find(ln, &svc->key))
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[IPVS_CMD_ATTR_SERVICE],
			    "the service exists already: edit or delete it");
	return -EEXIST;
}

/* An existing service is reported before a missing scheduler.  Another caller
 * may add the service while the scheduler is loaded, hence the second check.
 */
static int new_service(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	const struct l4lb_sched_ops *ops;
	struct l4lb_nl_service svc;
	int err;

	err = l4lb_nl_parse_service(&svc, info->attrs[IPVS_CMD_ATTR_SERVICE],
				    true, info->extack);
	if (err)
		return err;

	mutex_lock(&ln->lock);
	err = check_absent(ln, &svc, info);
	mutex_unlock(&ln->lock);
	if (err)
		return err;

	err = l4lb_nl_resolve(&svc, &ops, info->extack);
	if (err)
		return err;

	mutex_lock(&ln->lock);
	err = check_absent(ln, &svc, info);
	if (!err) {
		merge_flags(&svc, 0);
		err = l4lb_service_add(ln, &svc.key, &svc.cfg, ops,
				       info->extack);
	}
	mutex_unlock(&ln->lock);
	if (err)
		l4lb_sched_put(ops);
	return err;
}

static int set_service(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	const struct l4lb_sched_ops *ops;
	struct l4lb_service *service;
	struct l4lb_nl_service svc;
	int err;

	err = l4lb_nl_parse_service(&svc, info->attrs[IPVS_CMD_ATTR_SERVICE],
				    true, info->extack);
	if (err)
		return err;

	mutex_lock(&ln->lock);
	service = find_service(ln, &svc, info);
	mutex_unlock(&ln->lock);
	if (!service)
		return -ESRCH;

	err = l4lb_nl_resolve(&svc, &ops, info->extack);
	if (err)
		return err;

	mutex_lock(&ln->lock);
	service = find_service(ln, &svc, info);
	if (service) {
		merge_flags(&svc, service->flags);
		err = l4lb_service_edit(service, &svc.cfg, ops, info->extack);
	} else {
		err = -ESRCH;
	}
	mutex_unlock(&ln->lock);
	if (err)
		l4lb_sched_put(ops);
	return err;
}

/* DEL_SERVICE and ZERO of one service. */
static int do_service(struct sk_buff *skb, struct genl_info *info,
		      int (*fn)(struct l4lb_service *svc,
				struct genl_info *info))
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_service *service;
	struct l4lb_nl_service svc;
	int err;

	err = l4lb_nl_parse_service(&svc, info->attrs[IPVS_CMD_ATTR_SERVICE],
				    false, info->extack);
	if (err)
		return err;

	mutex_lock(&ln->lock);
	service = find_service(ln, &svc, info);
	err = service ? fn(service, info) : -ESRCH;
	mutex_unlock(&ln->lock);
	return err;
}

static int remove_service(struct l4lb_service *svc, struct genl_info *info)
{
	int err = l4lb_service_may_go(svc, info->extack);

	if (!err)
		l4lb_service_del(svc);
	return err;
}

static int del_service(struct sk_buff *skb, struct genl_info *info)
{
	return do_service(skb, info, remove_service);
}

static int zero_service(struct l4lb_service *svc, struct genl_info *info)
{
	l4lb_service_zero(svc);
	return 0;
}

static int zero(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_service *service;

	if (info->attrs[IPVS_CMD_ATTR_SERVICE])
		return do_service(skb, info, zero_service);

	mutex_lock(&ln->lock);
	list_for_each_entry(service, &ln->services, list)
		l4lb_service_zero(service);
	l4lb_stats_zero(&ln->stats);
	mutex_unlock(&ln->lock);
	return 0;
}

static int flush(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];

	mutex_lock(&ln->lock);
	l4lb_service_flush(ln);
	mutex_unlock(&ln->lock);
	return 0;
}

/* Real servers: NEW, SET, DEL */

static int add_dest(struct l4lb_service *svc,
		    const struct l4lb_server_config *cfg,
		    struct genl_info *info)
{
	return l4lb_server_add(svc, cfg, info->extack);
}

static int edit_dest(struct l4lb_service *svc,
		     const struct l4lb_server_config *cfg,
		     struct genl_info *info)
{
	return l4lb_server_edit(svc, l4lb_server_find(svc, cfg), cfg,
				info->extack);
}

static int remove_dest(struct l4lb_service *svc,
		       const struct l4lb_server_config *cfg,
		       struct genl_info *info)
{
	int err = l4lb_server_del(svc, l4lb_server_find(svc, cfg),
				  info->extack);

	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack,
				    info->attrs[IPVS_CMD_ATTR_DEST],
				    "the service has no such real server");
	return err;
}

static int do_dest(struct sk_buff *skb, struct genl_info *info, bool full,
		   int (*fn)(struct l4lb_service *svc,
			     const struct l4lb_server_config *cfg,
			     struct genl_info *info))
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_server_config cfg;
	struct l4lb_service *service;
	struct l4lb_nl_service svc;
	int err;

	err = l4lb_nl_parse_service(&svc, info->attrs[IPVS_CMD_ATTR_SERVICE],
				    false, info->extack);
	if (err)
		return err;

	mutex_lock(&ln->lock);
	service = find_service(ln, &svc, info);
	if (!service) {
		err = -ESRCH;
		goto unlock;
	}
	err = l4lb_nl_parse_dest(&cfg, service->key.af,
				 info->attrs[IPVS_CMD_ATTR_DEST], full,
				 info->extack);
	if (!err)
		err = fn(service, &cfg, info);
unlock:
	mutex_unlock(&ln->lock);
	return err;
}

static int new_dest(struct sk_buff *skb, struct genl_info *info)
{
	return do_dest(skb, info, true, add_dest);
}

static int set_dest(struct sk_buff *skb, struct genl_info *info)
{
	return do_dest(skb, info, true, edit_dest);
}

static int del_dest(struct sk_buff *skb, struct genl_info *info)
{
	return do_dest(skb, info, false, remove_dest);
}

/* Timeouts */

static int set_config(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct nlattr **tb = info->attrs;
	struct l4lb_timeouts t;
	int err;

	err = l4lb_nl_parse_timeouts(&t, tb[IPVS_CMD_ATTR_TIMEOUT_TCP],
				     tb[IPVS_CMD_ATTR_TIMEOUT_TCP_FIN],
				     tb[IPVS_CMD_ATTR_TIMEOUT_UDP], info->extack);
	if (err)
		return err;
	mutex_lock(&ln->lock);
	l4lb_timeouts_set(ln, &t);
	mutex_unlock(&ln->lock);
	return 0;
}

/* Replies */

/* Send a message of command @cmd.  @fill fills it in, with the configuration
 * mutex held.
 */
static int reply(struct genl_info *info, u8 cmd, struct l4lb_net *ln,
		 int (*fill)(struct sk_buff *msg, struct l4lb_net *ln,
			     const void *what), const void *what)
{
	struct sk_buff *msg;
	void *hdr;
	int err;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	hdr = genlmsg_put_reply(msg, info, &ipvs_family, 0, cmd);
	if (!hdr) {
		err = -EMSGSIZE;
		goto free;
	}
	mutex_lock(&ln->lock);
	err = fill(msg, ln, what);
	mutex_unlock(&ln->lock);
	if (err)
		goto free;
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
free:
	nlmsg_free(msg);
	return err;
}

static int fill_service(struct sk_buff *msg, struct l4lb_net *ln,
			const void *key)
{
	struct l4lb_service *service = l4lb_service_find(ln, key);

	return service ? l4lb_nl_fill_service(msg, service) : -ESRCH;
}

static int get_service(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_nl_service svc;
	int err;

	err = l4lb_nl_parse_service(&svc, info->attrs[IPVS_CMD_ATTR_SERVICE],
				    false, info->extack);
	if (err)
		return err;
	err = reply(info, IPVS_CMD_NEW_SERVICE, ln, fill_service, &svc.key);
	if (err == -ESRCH)
		NL_SET_ERR_MSG_ATTR(info->extack,
				    info->attrs[IPVS_CMD_ATTR_SERVICE],
				    "there is no such service");
	return err;
}

static int fill_config(struct sk_buff *msg, struct l4lb_net *ln,
		       const void *unused)
{
	return l4lb_nl_fill_config(msg, ln);
}

static int get_config(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];

	return reply(info, IPVS_CMD_SET_CONFIG, ln, fill_config, NULL);
}

static int fill_info(struct sk_buff *msg, struct l4lb_net *ln,
		     const void *unused)
{
	return l4lb_nl_fill_info(msg, ln);
}

static int get_info(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];

	return reply(info, IPVS_CMD_SET_INFO, ln, fill_info, NULL);
}

/* Dumps: as many objects per call as fit.  The position survives any change
 * between two calls.  Such a change is not reported by NLM_F_DUMP_INTR: in-tree
 * ip_vs does not either, and libnl, so ipvsadm, takes it for a failure.
 */

static void *dump_put(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid,
			   cb->nlh->nlmsg_seq, &ipvs_family, NLM_F_MULTI, cmd);
}

static int dump_service(struct sk_buff *skb, struct netlink_callback *cb,
			struct l4lb_service *service)
{
	void *hdr = dump_put(skb, cb, IPVS_CMD_NEW_SERVICE);

	if (!hdr)
		return -EMSGSIZE;
	if (l4lb_nl_fill_service(skb, service)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

static int dump_services(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct l4lb_nl_cursor *cursor = (void *)cb->ctx;
	struct l4lb_net *ln = l4lb_nl_net(skb, cb->extack);
	struct l4lb_service *service;

	BUILD_BUG_ON(sizeof(*cursor) > sizeof(cb->ctx));

	if (!ln)
		return -EAGAIN;
	mutex_lock(&ln->lock);
	service = l4lb_nl_cursor_service(ln, cursor);
	if (service) {
		list_for_each_entry_from(service, &ln->services, list) {
			cursor->key = service->key;
			if (!l4lb_key_is_range(&service->key) &&
			    dump_service(skb, cb, service))
				goto unlock;
			cursor->index++;
		}
		l4lb_nl_cursor_end(cursor);
	}
unlock:
	mutex_unlock(&ln->lock);
	return skb->len;
}

static int dump_dest(struct sk_buff *skb, struct netlink_callback *cb,
		     struct l4lb_server *server)
{
	void *hdr = dump_put(skb, cb, IPVS_CMD_NEW_DEST);

	if (!hdr)
		return -EMSGSIZE;
	if (l4lb_nl_fill_dest(skb, server)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* Newest first.  Each message walks the list to its position, which costs
 * little: it holds dozens of servers, so there are few messages.
 */
static void dump_dests_of(struct sk_buff *skb, struct netlink_callback *cb,
			  struct l4lb_service *service)
{
	long *next = &cb->args[0];
	struct l4lb_server *server;
	long i = 0;

	list_for_each_entry_reverse(server, &service->servers, node) {
		if (i++ < *next)
			continue;
		if (dump_dest(skb, cb, server))
			return;
		*next = i;
	}
}

/* A missing service or a malformed name gives an empty dump, not an error. */
static int dump_dests(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(skb, cb->extack);
	struct nlattr *tb[IPVS_CMD_ATTR_MAX + 1];
	struct l4lb_service *service;
	struct l4lb_nl_service svc;

	if (!ln)
		return -EAGAIN;
	if (nlmsg_parse_deprecated(cb->nlh, GENL_HDRLEN, tb, IPVS_CMD_ATTR_MAX,
				   l4lb_nl_policy, cb->extack) ||
	    l4lb_nl_parse_service(&svc, tb[IPVS_CMD_ATTR_SERVICE], false,
				  cb->extack))
		return 0;

	mutex_lock(&ln->lock);
	service = l4lb_service_find(ln, &svc.key);
	if (service)
		dump_dests_of(skb, cb, service);
	mutex_unlock(&ln->lock);
	return skb->len;
}

/* The position is the state of the last daemon that was dumped. */
static int dump_daemons(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(skb, cb->extack);
	struct l4lb_sync_config config;
	u32 state;
	void *hdr;

	if (!ln)
		return -EAGAIN;
	for (state = cb->args[0] + 1; state <= IP_VS_STATE_BACKUP; state++) {
		if (l4lb_sync_get(ln, state, &config)) {
			hdr = dump_put(skb, cb, IPVS_CMD_NEW_DAEMON);
			if (!hdr)
				break;
			if (l4lb_nl_fill_daemon(skb, &config)) {
				genlmsg_cancel(skb, hdr);
				break;
			}
			genlmsg_end(skb, hdr);
		}
		cb->args[0] = state;
	}
	return skb->len;
}

/* Every command, reading included, needs CAP_NET_ADMIN in the initial user
 * namespace.
 */
#define COMMAND(name, functions...)					\
	{								\
		.cmd = IPVS_CMD_##name,					\
		.validate = GENL_DONT_VALIDATE_STRICT |			\
			    GENL_DONT_VALIDATE_DUMP,			\
		.flags = GENL_ADMIN_PERM,				\
		functions						\
	}

static const struct genl_small_ops ipvs_ops[] = {
	COMMAND(NEW_SERVICE, .doit = new_service),
	COMMAND(SET_SERVICE, .doit = set_service),
	COMMAND(DEL_SERVICE, .doit = del_service),
	COMMAND(GET_SERVICE, .doit = get_service, .dumpit = dump_services),
	COMMAND(NEW_DEST, .doit = new_dest),
	COMMAND(SET_DEST, .doit = set_dest),
	COMMAND(DEL_DEST, .doit = del_dest),
	COMMAND(GET_DEST, .dumpit = dump_dests),
	COMMAND(NEW_DAEMON, .doit = l4lb_nl_new_daemon),
	COMMAND(DEL_DAEMON, .doit = l4lb_nl_del_daemon),
	COMMAND(GET_DAEMON, .dumpit = dump_daemons),
	COMMAND(SET_CONFIG, .doit = set_config),
	COMMAND(GET_CONFIG, .doit = get_config),
	COMMAND(GET_INFO, .doit = get_info),
	COMMAND(ZERO, .doit = zero),
	COMMAND(FLUSH, .doit = flush),
};

#undef COMMAND

static struct genl_family ipvs_family __ro_after_init = {
	.name		= IPVS_GENL_NAME,
	.version	= IPVS_GENL_VERSION,
	.maxattr	= IPVS_CMD_ATTR_MAX,
	.policy		= l4lb_nl_policy,
	.netnsok	= true,
	.parallel_ops	= true,
	.pre_doit	= l4lb_nl_pre_doit,
	.module		= THIS_MODULE,
	.small_ops	= ipvs_ops,
	.n_small_ops	= ARRAY_SIZE(ipvs_ops),
	/* None of its commands checks reserved header fields. */
	.resv_start_op	= IPVS_CMD_MAX + 1,
};

int __init l4lb_netlink_init(void)
{
	return genl_register_family(&ipvs_family);
}

void l4lb_netlink_exit(void)
{
	genl_unregister_family(&ipvs_family);
}

MODULE_ALIAS_GENL_FAMILY(IPVS_GENL_NAME);

// SPDX-License-Identifier: GPL-2.0
/*
 * Dumps of family L4LB with a message for each real server.  If services or servers
 * come or go between two calls, some may be missing or listed twice.
 */
#include "api/netlink_servers.h"

#include <net/netlink.h>

#include "api/netlink_fill.h"
#include "api/netlink_l4lb.h"
#include "api/netlink_parse.h"

/**
 * struct position - of a dump
 * @cursor: the service
 * @server: how many of its real servers were seen
 * @only: no other service is listed
 */
struct position {
	struct l4lb_nl_cursor	cursor;
	unsigned int		server;
	bool			only;
};

static int fill_key(struct sk_buff *skb, const struct l4lb_svc_key *key)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_ATTR_SERVICE);

	if (!nest || l4lb_nl_fill_key(skb, key))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_server(struct sk_buff *skb, struct netlink_callback *cb,
		      const struct l4lb_nl_server_dump *dump,
		      const struct l4lb_server *server)
{
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &l4lb_ext_family, NLM_F_MULTI, dump->cmd);
	if (!hdr)
		return -EMSGSIZE;
	if (fill_key(skb, &server->name.svc) || dump->fill(skb, server)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

static int put_service(struct sk_buff *skb, struct netlink_callback *cb,
		       const struct l4lb_nl_server_dump *dump,
		       const struct l4lb_service *svc)
{
	struct position *pos = (void *)cb->ctx;
	const struct l4lb_server *server;
	unsigned int i = 0;

	list_for_each_entry(server, &svc->servers, node) {
		if (i++ < pos->server)
			continue;
		if (dump->lists(server) && put_server(skb, cb, dump, server))
			return -EMSGSIZE;
		pos->server = i;
		if (i % 256 == 0)
			cond_resched();
	}
	return 0;
}

static void put_services(struct sk_buff *skb, struct netlink_callback *cb,
			 const struct l4lb_nl_server_dump *dump,
			 struct l4lb_net *ln)
{
	struct position *pos = (void *)cb->ctx;
	struct l4lb_service *svc = l4lb_nl_cursor_service(ln, &pos->cursor);

	if (!svc)
		return;
	/* The service is gone; this is the one now at its index. */
	if (memcmp(&svc->key, &pos->cursor.key, sizeof(svc->key)))
		pos->server = 0;
	list_for_each_entry_from(svc, &ln->services, list) {
		pos->cursor.key = svc->key;
		if (put_service(skb, cb, dump, svc))
			return;
		pos->cursor.index++;
		pos->server = 0;
	}
	l4lb_nl_cursor_end(&pos->cursor);
}

int l4lb_nl_start_servers(struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(cb->skb, cb->extack);
	struct nlattr **attrs = l4lb_dump_attrs(cb);
	struct position *pos = (void *)cb->ctx;
	int err;

	if (!ln)
		return -EAGAIN;
	if (!attrs[L4LB_ATTR_SERVICE])
		return 0;
	pos->only = true;
	err = l4lb_nl_parse_service_name(&pos->cursor.key, attrs, cb->extack);
	if (err)
		return err;
	mutex_lock(&ln->lock);
	if (!l4lb_service_find(ln, &pos->cursor.key)) {
		NL_SET_ERR_MSG(cb->extack,
			       "there is no such service: add it, with family IPVS");
		err = -ESRCH;
	}
	mutex_unlock(&ln->lock);
	return err;
}

int l4lb_nl_dump_servers(struct sk_buff *skb, struct netlink_callback *cb,
			 const struct l4lb_nl_server_dump *dump)
{
	struct l4lb_net *ln = l4lb_nl_net(skb, cb->extack);
	struct position *pos = (void *)cb->ctx;
	const struct l4lb_service *svc;

	BUILD_BUG_ON(sizeof(*pos) > sizeof(cb->ctx));

	if (!ln)
		return -EAGAIN;
	mutex_lock(&ln->lock);
	if (pos->only) {
		svc = l4lb_service_find(ln, &pos->cursor.key);
		if (svc)
			put_service(skb, cb, dump, svc);
	} else {
		put_services(skb, cb, dump, ln);
	}
	mutex_unlock(&ln->lock);
	return skb->len;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Events for the multicast group of family L4LB.
 *
 * Without a listener nothing is allocated.  An event that cannot be sent, or
 * for which a listener's socket has no room, leaves a gap in the numbers.
 */
#include "api/netlink_event.h"

#include <net/netlink.h>

#include "api/netlink_fill.h"
#include "api/netlink_l4lb.h"

#define EVENT_SIZE	512	/* the largest has about 300 bytes */

static int fill_service(struct sk_buff *skb, const struct l4lb_svc_key *key,
			const char *sched_name)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_ATTR_SERVICE);

	if (!nest || l4lb_nl_fill_key(skb, key) ||
	    (sched_name && nla_put_string(skb, IPVS_SVC_ATTR_SCHED_NAME,
					  sched_name)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int fill_server(struct sk_buff *skb, const struct l4lb_server *server)
{
	struct nlattr *list, *nest;

	list = nla_nest_start(skb, L4LB_ATTR_DESTS);
	nest = list ? nla_nest_start(skb, 1) : NULL;
	if (!nest || l4lb_nl_fill_dest_config(skb, server) ||
	    l4lb_nl_fill_dest_conns(skb, server))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	nla_nest_end(skb, list);
	return 0;
}

static int fill_seq(struct sk_buff *skb, const struct l4lb_net *ln)
{
	return nla_put_u64_64bit(skb, L4LB_ATTR_SEQ,
				 ln->events ? ln->events->seq : 0,
				 L4LB_ATTR_PAD);
}

static int fill_event(struct sk_buff *skb, const struct l4lb_net *ln,
		      const struct l4lb_happening *event)
{
	const struct l4lb_service *svc = event->svc;
	bool gone = event->what == L4LB_EVENT_SERVICE_DELETED;
	int err;

	err = nla_put_u32(skb, L4LB_ATTR_EVENT, event->what) ?:
	      fill_seq(skb, ln);
	if (!err && svc)
		err = fill_service(skb, &svc->key, gone ? NULL :
				   l4lb_service_sched_name(svc));
	if (!err && event->server)
		err = fill_service(skb, &event->server->name.svc, NULL) ?:
		      fill_server(skb, event->server);
	return err ?: nla_put_u64_64bit(skb, L4LB_ATTR_COUNT, event->count,
					L4LB_ATTR_PAD);
}

void l4lb_nl_send_event(struct l4lb_net *ln, const struct l4lb_happening *event)
{
	struct sk_buff *msg;
	void *hdr;

	lockdep_assert_held(&ln->lock);
	if (!genl_has_listeners(&l4lb_ext_family, ln->net, L4LB_NL_EVENTS))
		return;
	msg = nlmsg_new(EVENT_SIZE, GFP_KERNEL);
	if (!msg)
		return;
	hdr = genlmsg_put(msg, 0, 0, &l4lb_ext_family, 0, L4LB_CMD_GET_EVENT);
	if (!hdr || fill_event(msg, ln, event)) {
		nlmsg_free(msg);
		return;
	}
	genlmsg_end(msg, hdr);
	genlmsg_multicast_netns(&l4lb_ext_family, ln->net, msg, 0,
				L4LB_NL_EVENTS, GFP_KERNEL);
}

int l4lb_nl_get_event(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct sk_buff *msg;
	void *hdr;
	int err;

	msg = l4lb_nl_reply_new(info, &hdr);
	if (!msg)
		return -ENOMEM;
	mutex_lock(&ln->lock);
	err = fill_seq(msg, ln);
	mutex_unlock(&ln->lock);
	return l4lb_nl_reply_send(info, msg, hdr, err);
}

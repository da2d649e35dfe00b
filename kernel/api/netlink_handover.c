// SPDX-License-Identifier: GPL-2.0
/*
 * L4LB_CMD_EXPORT_CONNS: all connections, for the module that is loaded next.
 * L4LB_CMD_IMPORT_CONNS: take them.
 */
#include "api/netlink_handover.h"

#include <net/netlink.h>

#include "api/netlink_l4lb.h"
#include "api/netlink_parse.h"
#include "api/netlink_sync.h"
#include "sync/handover.h"
#include "sync/wire.h"

const struct nla_policy l4lb_nl_handover_policy[] = {
	[L4LB_HANDOVER_ATTR_MESSAGE] = NLA_POLICY_RANGE(NLA_BINARY,
							L4LB_SYNC_HEADER_V1,
							L4LB_HANDOVER_LEN),
};

/* ---- EXPORT_CONNS ---- */

int l4lb_nl_start_export(struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(cb->skb, cb->extack);
	struct l4lb_handover *handover;

	if (!ln)
		return -EAGAIN;
	handover = l4lb_handover_open(ln);
	if (!handover)
		return -ENOMEM;
	cb->args[0] = (long)handover;
	return 0;
}

static int dump_message(struct sk_buff *skb, const struct netlink_callback *cb,
			const struct l4lb_handover_message *message)
{
	struct nlattr *nest;
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &l4lb_ext_family, NLM_F_MULTI, L4LB_CMD_EXPORT_CONNS);
	if (!hdr)
		return -EMSGSIZE;
	nest = nla_nest_start(skb, L4LB_ATTR_HANDOVER);
	if (!nest ||
	    nla_put_u32(skb, L4LB_HANDOVER_ATTR_RECORDS, message->records) ||
	    nla_put_u32(skb, L4LB_HANDOVER_ATTR_LEFT_OUT, message->left_out) ||
	    nla_put(skb, L4LB_HANDOVER_ATTR_MESSAGE, message->len,
		    message->data)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	genlmsg_end(skb, hdr);
	return 0;
}

int l4lb_nl_dump_export(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct l4lb_handover *handover = (struct l4lb_handover *)cb->args[0];
	struct l4lb_handover_message message;

	for (;;) {
		message = l4lb_handover_peek(handover);
		if (!message.len)
			return skb->len;
		if (dump_message(skb, cb, &message))
			return skb->len ?: -EMSGSIZE;
		l4lb_handover_take(handover);
	}
}

int l4lb_nl_done_export(struct netlink_callback *cb)
{
	l4lb_handover_close((struct l4lb_handover *)cb->args[0]);
	return 0;
}

/* ---- IMPORT_CONNS ---- */

static int put_tally(struct sk_buff *msg,
		     const struct l4lb_handover_tally *tally)
{
	struct nlattr *nest = nla_nest_start(msg, L4LB_ATTR_HANDOVER);

	if (!nest ||
	    nla_put_u32(msg, L4LB_HANDOVER_ATTR_RECORDS, tally->applied) ||
	    nla_put_u32(msg, L4LB_HANDOVER_ATTR_NO_SERVER, tally->no_server) ||
	    nla_put_u32(msg, L4LB_HANDOVER_ATTR_FULL, tally->full) ||
	    nla_put_u32(msg, L4LB_HANDOVER_ATTR_UNSUPPORTED,
			tally->unsupported))
		return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int apply(struct l4lb_net *ln, struct genl_info *info,
		 struct l4lb_handover_tally *tally)
{
	struct nlattr *tb[L4LB_HANDOVER_ATTR_MESSAGE + 1] = { };
	const struct nlattr *nest = info->attrs[L4LB_ATTR_HANDOVER];
	const struct nlattr *message;
	int err;

	err = nest ? nla_parse_nested(tb, L4LB_HANDOVER_ATTR_MESSAGE, nest,
				      l4lb_nl_handover_policy, info->extack) : 0;
	if (err)
		return err;
	message = tb[L4LB_HANDOVER_ATTR_MESSAGE];
	if (!message) {
		NL_SET_ERR_MSG(info->extack,
			       "handover: MESSAGE is missing: send one of EXPORT_CONNS");
		return -EINVAL;
	}
	err = l4lb_nl_prepare_receiver(ln, info) ?: l4lb_sync_prepare(ln);
	if (err)
		return err;
	err = l4lb_handover_apply(ln, nla_data(message), nla_len(message),
				  tally);
	if (err)
		NL_SET_ERR_MSG_ATTR(info->extack, message,
				    "handover: this message is damaged, or of a later version of l4lb");
	return err;
}

int l4lb_nl_import_conns(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct l4lb_handover_tally tally = { };
	struct sk_buff *msg;
	void *hdr;
	int err;

	msg = l4lb_nl_reply_new(info, &hdr);
	if (!msg)
		return -ENOMEM;
	err = apply(ln, info, &tally) ?: put_tally(msg, &tally);
	return l4lb_nl_reply_send(info, msg, hdr, err);
}

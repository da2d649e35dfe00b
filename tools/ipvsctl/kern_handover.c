// SPDX-License-Identifier: GPL-2.0
/* L4LB_CMD_EXPORT_CONNS and L4LB_CMD_IMPORT_CONNS. */
#include <errno.h>

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern_handover.h"
#include "wire.h"

struct reader {
	void (*fn)(const struct handover_message *m, void *arg);
	void *arg;
};

static uint32_t get_u32(struct nlattr **tb, int attr)
{
	return tb[attr] && nla_len(tb[attr]) >= 4 ? nla_get_u32(tb[attr]) : 0;
}

/* Returns whether the message has the attributes of a handover. */
static int parse(struct nlmsghdr *nlh, struct nlattr **tb)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1];

	return genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) >= 0 &&
	       top[L4LB_ATTR_HANDOVER] &&
	       nla_parse_nested(tb, L4LB_HANDOVER_ATTR_MAX,
				top[L4LB_ATTR_HANDOVER], NULL) >= 0;
}

static void take_message(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[L4LB_HANDOVER_ATTR_MAX + 1];
	const struct reader *reader = arg;
	struct handover_message m;

	if (!parse(nlh, tb) || !tb[L4LB_HANDOVER_ATTR_MESSAGE])
		return;
	m.data = nla_data(tb[L4LB_HANDOVER_ATTR_MESSAGE]);
	m.len = (size_t)nla_len(tb[L4LB_HANDOVER_ATTR_MESSAGE]);
	m.records = get_u32(tb, L4LB_HANDOVER_ATTR_RECORDS);
	m.left_out = get_u32(tb, L4LB_HANDOVER_ATTR_LEFT_OUT);
	reader->fn(&m, reader->arg);
}

static void take_tally(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[L4LB_HANDOVER_ATTR_MAX + 1];
	struct handover_tally *tally = arg;

	if (!parse(nlh, tb))
		return;
	tally->imported += get_u32(tb, L4LB_HANDOVER_ATTR_RECORDS);
	tally->no_server += get_u32(tb, L4LB_HANDOVER_ATTR_NO_SERVER);
	tally->full += get_u32(tb, L4LB_HANDOVER_ATTR_FULL);
	tally->unsupported += get_u32(tb, L4LB_HANDOVER_ATTR_UNSUPPORTED);
}

int kern_export(void (*fn)(const struct handover_message *m, void *arg),
		void *arg)
{
	struct reader reader = { .fn = fn, .arg = arg };
	struct nl_msg *msg;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	msg = wire_own_request(L4LB_CMD_EXPORT_CONNS, NLM_F_DUMP);
	return msg ? wire_call(msg, take_message, &reader) : -ENOMEM;
}

int kern_import(const void *data, size_t len, struct handover_tally *tally)
{
	struct nlattr *nest;
	struct nl_msg *msg;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	msg = wire_own_request(L4LB_CMD_IMPORT_CONNS, 0);
	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, L4LB_ATTR_HANDOVER);
	if (!nest || nla_put(msg, L4LB_HANDOVER_ATTR_MESSAGE, (int)len, data)) {
		nlmsg_free(msg);
		return -ENOMEM;
	}
	nla_nest_end(msg, nest);
	return wire_call(msg, take_tally, tally);
}

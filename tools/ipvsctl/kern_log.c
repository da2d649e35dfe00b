// SPDX-License-Identifier: GPL-2.0
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern_conn.h"
#include "kern_group.h"
#include "kern_log.h"
#include "kern_msg.h"
#include "../../kernel/l4lb.h"

static struct group log_group = {
	.name = L4LB_GENL_LOG, .cmd = L4LB_CMD_LOG_CONNS, .batches = true,
};

int kern_log_open(void)
{
	return group_open(&log_group);
}

void kern_log_close(void)
{
	group_close(&log_group);
}

int kern_log_fd(void)
{
	return group_fd(&log_group);
}

static uint64_t get_u64(struct nlattr **tb, int attr)
{
	return tb[attr] && nla_len(tb[attr]) >= 8 ? nla_get_u64(tb[attr]) : 0;
}

static void take_record(struct nlattr *nest, const struct log_reader *r)
{
	struct nlattr *tb[L4LB_CONN_ATTR_MAX + 1];
	struct ended e = { 0 };

	if (nla_parse_nested(tb, L4LB_CONN_ATTR_MAX, nest, NULL) < 0)
		return;
	kern_conn_take(tb, &e.conn);
	e.why = kern_get_u32(tb[L4LB_CONN_ATTR_WHY]);
	e.time = get_u64(tb, L4LB_CONN_ATTR_ENDED);
	e.lasted = get_u64(tb, L4LB_CONN_ATTR_LASTED);
	e.idle = get_u64(tb, L4LB_CONN_ATTR_IDLE);
	e.copy = kern_get_u32(tb[L4LB_CONN_ATTR_FLAGS]) & L4LB_CONN_F_COPY;
	r->fn(&e, r->arg);
}

/* A message has many attributes CONN; @top has only the last one. */
static void take_message(struct nlmsghdr *nlh, struct nlattr **top, void *arg)
{
	struct genlmsghdr *head = nlmsg_data(nlh);
	struct nlattr *attr;
	int left;

	(void)top;
	nla_for_each_attr(attr, genlmsg_attrdata(head, 0),
			  genlmsg_attrlen(head, 0), left)
		if (nla_type(attr) == L4LB_ATTR_CONN)
			take_record(attr, arg);
}

static void tell_lost(uint64_t n, void *arg)
{
	const struct log_reader *r = arg;

	r->lost(n, r->arg);
}

int kern_log_read(const struct log_reader *r)
{
	const struct group_reader reader = {
		.fn = take_message, .lost = tell_lost, .arg = (void *)r,
	};

	return group_read(&log_group, &reader);
}

int kern_log_finish(const struct log_reader *r)
{
	const struct group_reader reader = {
		.fn = take_message, .lost = tell_lost, .arg = (void *)r,
	};

	return group_finish(&log_group, &reader);
}

// SPDX-License-Identifier: GPL-2.0
/* Connection synchronisation: its daemons in the kernel, by family IPVS. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern.h"
#include "kern_msg.h"
#include "kern_sync.h"
#include "wire.h"

struct found {
	struct sync_daemon *list;
	int n;
};

const char *sync_role_name(uint32_t role)
{
	return role == IP_VS_STATE_MASTER ? "send" : "receive";
}

static void get_group(struct nlattr **tb, struct sync_daemon *daemon)
{
	struct nlattr *group6 = tb[IPVS_DAEMON_ATTR_MCAST_GROUP6];
	struct nlattr *group = tb[IPVS_DAEMON_ATTR_MCAST_GROUP];

	if (group6 && nla_len(group6) >= 16) {
		daemon->af = AF_INET6;
		memcpy(daemon->group.b, nla_data(group6), 16);
	} else if (group && nla_len(group) >= 4) {
		daemon->af = AF_INET;
		memcpy(daemon->group.b, nla_data(group), 4);
	}
}

static void take_daemon(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[IPVS_CMD_ATTR_MAX + 1];
	struct nlattr *tb[IPVS_DAEMON_ATTR_MAX + 1];
	struct found *found = arg;
	struct sync_daemon *daemon;

	if (found->n == SYNC_DAEMONS_MAX ||
	    genlmsg_parse(nlh, 0, top, IPVS_CMD_ATTR_MAX, NULL) < 0 ||
	    !top[IPVS_CMD_ATTR_DAEMON] ||
	    nla_parse_nested(tb, IPVS_DAEMON_ATTR_MAX,
			     top[IPVS_CMD_ATTR_DAEMON], NULL) < 0)
		return;
	daemon = &found->list[found->n++];
	memset(daemon, 0, sizeof(*daemon));
	daemon->role = kern_get_u32(tb[IPVS_DAEMON_ATTR_STATE]);
	kern_get_string(tb[IPVS_DAEMON_ATTR_MCAST_IFN], daemon->dev,
			sizeof(daemon->dev));
	daemon->id = kern_get_u32(tb[IPVS_DAEMON_ATTR_SYNC_ID]);
	daemon->maxlen = kern_get_u16(tb[IPVS_DAEMON_ATTR_SYNC_MAXLEN]);
	daemon->port = kern_get_u16(tb[IPVS_DAEMON_ATTR_MCAST_PORT]);
	if (tb[IPVS_DAEMON_ATTR_MCAST_TTL])
		daemon->ttl = nla_get_u8(tb[IPVS_DAEMON_ATTR_MCAST_TTL]);
	get_group(tb, daemon);
}

int kern_sync_list(struct sync_daemon list[SYNC_DAEMONS_MAX])
{
	struct nl_msg *msg = wire_request(IPVS_CMD_GET_DAEMON, NLM_F_DUMP);
	struct found found = { .list = list };
	int err = msg ? wire_call(msg, take_daemon, &found) : -ENOMEM;

	return err ? err : found.n;
}

static const char *describe(const struct sync_daemon *daemon)
{
	static char line[160];
	int n;

	n = snprintf(line, sizeof(line), "sync %s dev %s id %u",
		     sync_role_name(daemon->role), daemon->dev, daemon->id);
	if (daemon->maxlen)
		n += snprintf(line + n, sizeof(line) - n, " maxlen %u",
			      daemon->maxlen);
	if (daemon->af)
		n += snprintf(line + n, sizeof(line) - n, " group %s",
			      ip_text(daemon->af, &daemon->group));
	if (daemon->port)
		n += snprintf(line + n, sizeof(line) - n, " port %u",
			      daemon->port);
	if (daemon->ttl)
		snprintf(line + n, sizeof(line) - n, " ttl %u", daemon->ttl);
	return line;
}

static void put_group(struct nl_msg *msg, const struct sync_daemon *daemon)
{
	if (daemon->af == AF_INET)
		nla_put(msg, IPVS_DAEMON_ATTR_MCAST_GROUP, 4, &daemon->group);
	else if (daemon->af == AF_INET6)
		nla_put(msg, IPVS_DAEMON_ATTR_MCAST_GROUP6, 16, &daemon->group);
}

int kern_sync_start(const struct sync_daemon *daemon)
{
	struct nlattr *nest;
	struct nl_msg *msg;

	if (kern_announce("start", describe(daemon)))
		return 0;
	msg = wire_request(IPVS_CMD_NEW_DAEMON, 0);
	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, IPVS_CMD_ATTR_DAEMON);
	nla_put_u32(msg, IPVS_DAEMON_ATTR_STATE, daemon->role);
	nla_put_string(msg, IPVS_DAEMON_ATTR_MCAST_IFN, daemon->dev);
	nla_put_u32(msg, IPVS_DAEMON_ATTR_SYNC_ID, daemon->id);
	if (daemon->maxlen)
		nla_put_u16(msg, IPVS_DAEMON_ATTR_SYNC_MAXLEN, daemon->maxlen);
	put_group(msg, daemon);
	if (daemon->port)
		nla_put_u16(msg, IPVS_DAEMON_ATTR_MCAST_PORT, daemon->port);
	if (daemon->ttl)
		nla_put_u8(msg, IPVS_DAEMON_ATTR_MCAST_TTL, daemon->ttl);
	nla_nest_end(msg, nest);
	return wire_call(msg, NULL, NULL);
}

static struct nl_msg *stop_request(uint32_t role)
{
	struct nl_msg *msg = wire_request(IPVS_CMD_DEL_DAEMON, 0);
	struct nlattr *nest;

	if (!msg)
		return NULL;
	nest = nla_nest_start(msg, IPVS_CMD_ATTR_DAEMON);
	nla_put_u32(msg, IPVS_DAEMON_ATTR_STATE, role);
	nla_nest_end(msg, nest);
	return msg;
}

int kern_sync_stop(uint32_t role)
{
	char what[16];
	struct nl_msg *msg;

	snprintf(what, sizeof(what), "sync %s", sync_role_name(role));
	if (kern_announce("stop", what))
		return 0;
	msg = stop_request(role);
	return msg ? wire_call(msg, NULL, NULL) : -ENOMEM;
}

void kern_sync_undo(uint32_t role)
{
	struct nl_msg *msg = stop_request(role);

	if (msg)
		wire_undo(msg);
}

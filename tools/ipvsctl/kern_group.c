// SPDX-License-Identifier: GPL-2.0
/* Messages of a group come to a socket of their own, so that they do not mix with
 * answers.
 *
 * The kernel numbers the records. When the socket had no room for some, the numbers
 * tell how many are missing; after the last one, the kernel is asked how far it has
 * come.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "kern_group.h"
#include "wire.h"
#include "../../kernel/l4lb.h"

enum {
	BUFFER	= 8 << 20,
	TURN	= 32,			/* messages; then signals are looked at */
	TRIES	= 8,
	CONTROL_GROUP = GENL_ID_CTRL,	/* of the families that come and go */
};

static uint64_t get_u64(struct nlattr **top, int attr)
{
	return top[attr] && nla_len(top[attr]) >= 8 ? nla_get_u64(top[attr]) : 0;
}

static void take_number(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1];

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) >= 0)
		*(uint64_t *)arg = get_u64(top, L4LB_ATTR_SEQ);
}

static int ask_number(const struct group *g, uint64_t *number)
{
	struct nl_msg *msg = wire_own_request(g->cmd, 0);

	*number = 0;
	return msg ? wire_call(msg, take_number, number) : -ENOMEM;
}

static int join(struct group *g)
{
	int group, fd, size = BUFFER;

	g->sock = nl_socket_alloc();
	if (!g->sock)
		return -ENOMEM;
	if (genl_connect(g->sock) < 0)
		return -errno;
	group = wire_own_group(g->name);
	if (group < 0)
		return group == -ENOENT ? -EOPNOTSUPP : group;
	fd = nl_socket_get_fd(g->sock);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (nl_socket_add_membership(g->sock, group) < 0)
		return -EPERM;
	nl_socket_add_membership(g->sock, CONTROL_GROUP);
	return 0;
}

int group_open(struct group *g)
{
	int err;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	err = join(g);
	/* An older module knows the group, but not the command. */
	if (!err)
		err = ask_number(g, &g->last);
	if (err)
		group_close(g);
	return err;
}

void group_close(struct group *g)
{
	nl_socket_free(g->sock);
	g->sock = NULL;
}

int group_fd(const struct group *g)
{
	return nl_socket_get_fd(g->sock);
}

/* The last record but those to come is number @number. */
static void come_to(struct group *g, const struct group_reader *r,
		    uint64_t number)
{
	if (number <= g->last)
		return;
	r->lost(number - g->last, r->arg);
	g->last = number;
}

static bool tells_of_unloading(struct nlmsghdr *nlh)
{
	const struct genlmsghdr *head = nlmsg_data(nlh);
	struct nlattr *tb[CTRL_ATTR_MAX + 1];

	return head->cmd == CTRL_CMD_DELFAMILY &&
	       genlmsg_parse(nlh, 0, tb, CTRL_ATTR_MAX, NULL) >= 0 &&
	       tb[CTRL_ATTR_FAMILY_NAME] &&
	       !strcmp(nla_get_string(tb[CTRL_ATTR_FAMILY_NAME]),
		       L4LB_GENL_NAME);
}

static void take_message(struct group *g, const struct group_reader *r,
			 struct nlmsghdr *nlh)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1];
	uint64_t number, n;

	if (nlh->nlmsg_type == GENL_ID_CTRL) {
		g->gone |= tells_of_unloading(nlh);
		return;
	}
	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0)
		return;
	number = get_u64(top, L4LB_ATTR_SEQ);
	n = g->batches ? get_u64(top, L4LB_ATTR_COUNT) : 1;
	if (n > number)
		n = number;
	if (number) {
		if (number <= g->last)
			return;	/* counted as lost, or from before the start */
		come_to(g, r, number - n);
		g->last = number;
	}
	r->fn(nlh, top, r->arg);
}

/* Reads until nothing is left, but at most @most messages, or those up to number
 * @until.
 */
static int drain(struct group *g, const struct group_reader *r,
		 unsigned int most, uint64_t until)
{
	static char buffer[1 << 16];
	struct nlmsghdr *nlh;
	ssize_t n;
	int left;

	while (most-- && g->last < until) {
		n = recv(group_fd(g), buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n < 0 && errno == ENOBUFS) {
			g->overrun = true;
			continue;
		}
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		left = (int)n;
		for (nlh = (void *)buffer; nlmsg_ok(nlh, left);
		     nlh = nlmsg_next(nlh, &left))
			take_message(g, r, nlh);
	}
	return 0;
}

int group_finish(struct group *g, const struct group_reader *r)
{
	unsigned int tries = TRIES;	/* whoever sends does not choose when it ends */
	uint64_t number;
	int err;

	do {
		g->overrun = false;
		err = ask_number(g, &number);
		/* What is not in the socket by now was lost. */
		if (!err)
			err = drain(g, r, UINT_MAX, number);
		if (!err)
			come_to(g, r, number);
	} while (!err && g->overrun && --tries);
	return err;
}

int group_read(struct group *g, const struct group_reader *r)
{
	int err = drain(g, r, TURN, UINT64_MAX);

	if (!err && g->gone)
		return -ENODEV;
	return !err && g->overrun ? group_finish(g, r) : err;
}

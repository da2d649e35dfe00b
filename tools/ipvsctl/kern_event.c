// SPDX-License-Identifier: GPL-2.0
/* Events come to a socket of their own, so that they do not mix with answers.
 *
 * The kernel numbers them. When the socket had no room for some, the numbers
 * tell how many are missing; after the last one, the kernel is asked how far it
 * has come.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>

#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "kern_event.h"
#include "kern_msg.h"
#include "wire.h"

enum { BUFFER = 8 << 20 };

static struct nl_sock *sock;
static uint64_t last;		/* number of the last event */
static bool overrun;		/* there was no room for some */

struct reader {
	void (*fn)(const struct event *e, void *arg);
	void *arg;
};

static void take_number(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1];

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) >= 0 &&
	    top[L4LB_ATTR_SEQ] && nla_len(top[L4LB_ATTR_SEQ]) >= 8)
		*(uint64_t *)arg = nla_get_u64(top[L4LB_ATTR_SEQ]);
}

static int ask_number(uint64_t *number)
{
	struct nl_msg *msg = wire_own_request(L4LB_CMD_GET_EVENT, 0);

	*number = 0;
	return msg ? wire_call(msg, take_number, number) : -ENOMEM;
}

static int join(void)
{
	int group, fd, size = BUFFER;

	sock = nl_socket_alloc();
	if (!sock)
		return -ENOMEM;
	if (genl_connect(sock) < 0)
		return -errno;
	group = genl_ctrl_resolve_grp(sock, L4LB_GENL_NAME, L4LB_GENL_EVENTS);
	if (group < 0)
		return -EOPNOTSUPP;
	fd = nl_socket_get_fd(sock);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return nl_socket_add_membership(sock, group) < 0 ? -EPERM : 0;
}

int kern_event_open(void)
{
	int err;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	err = join();
	/* An older module knows the group, but not the command. */
	if (!err)
		err = ask_number(&last);
	if (err)
		kern_event_close();
	return err;
}

void kern_event_close(void)
{
	nl_socket_free(sock);
	sock = NULL;
}

int kern_event_fd(void)
{
	return nl_socket_get_fd(sock);
}

static void tell_lost(const struct reader *r, uint64_t number)
{
	struct event e = { .what = EVENT_LOST, .count = number - last };

	if (number > last)
		r->fn(&e, r->arg);
}

static void take_peer(struct nlattr *nest, struct event *e)
{
	struct nlattr *tb[L4LB_PEER_ATTR_MAX + 1], *addr;

	if (nla_parse_nested(tb, L4LB_PEER_ATTR_MAX, nest, NULL) < 0 ||
	    !tb[L4LB_PEER_ATTR_ADDR])
		return;
	addr = tb[L4LB_PEER_ATTR_ADDR];
	e->what = EVENT_PEER;
	e->peer_af = nla_len(addr) == 4 ? AF_INET : AF_INET6;
	nla_memcpy(e->peer.b, addr, sizeof(e->peer.b));
	e->peer_state = kern_get_u32(tb[L4LB_PEER_ATTR_STATE]);
}

static void take_objects(struct nlattr **top, struct event *e)
{
	struct nlattr *tb[IPVS_SVC_ATTR_MAX + 1];
	struct nlattr *dest[IPVS_DEST_ATTR_MAX + 1], *nest;
	int left;

	if (!top[L4LB_ATTR_SERVICE] ||
	    nla_parse_nested(tb, IPVS_SVC_ATTR_MAX, top[L4LB_ATTR_SERVICE],
			     NULL) < 0)
		return;
	e->has_service = true;
	kern_get_service(tb, &e->svc);
	if (!top[L4LB_ATTR_DESTS])
		return;
	nla_for_each_nested(nest, top[L4LB_ATTR_DESTS], left) {
		if (nla_parse_nested(dest, IPVS_DEST_ATTR_MAX, nest, NULL) < 0)
			return;
		e->has_server = true;
		kern_get_server(dest, &e->svc, &e->srv);
	}
}

static void take_message(struct nlmsghdr *nlh, const struct reader *r)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1];
	struct event e = { 0 };
	uint64_t number;

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0)
		return;
	if (top[L4LB_ATTR_PEER]) {
		take_peer(top[L4LB_ATTR_PEER], &e);
	} else if (top[L4LB_ATTR_EVENT] && top[L4LB_ATTR_SEQ]) {
		number = nla_get_u64(top[L4LB_ATTR_SEQ]);
		if (number <= last)
			return;	/* counted as lost, or from before the start */
		tell_lost(r, number - 1);
		last = number;
		e.what = kern_get_u32(top[L4LB_ATTR_EVENT]);
		if (top[L4LB_ATTR_COUNT])
			e.count = nla_get_u64(top[L4LB_ATTR_COUNT]);
		take_objects(top, &e);
	}
	if (e.what)
		r->fn(&e, r->arg);
}

/* Reads until nothing is left. */
static int drain(const struct reader *r)
{
	static char buffer[1 << 16];
	struct nlmsghdr *nlh;
	ssize_t n;
	int left;

	for (;;) {
		n = recv(kern_event_fd(), buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n < 0 && errno == ENOBUFS) {
			overrun = true;
			continue;
		}
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		left = (int)n;
		for (nlh = (void *)buffer; nlmsg_ok(nlh, left);
		     nlh = nlmsg_next(nlh, &left))
			take_message(nlh, r);
	}
}

int kern_event_read(void (*fn)(const struct event *e, void *arg), void *arg)
{
	const struct reader r = { .fn = fn, .arg = arg };
	uint64_t number;
	int err;

	err = drain(&r);
	while (!err && overrun) {
		overrun = false;
		err = ask_number(&number);
		/* What is not in the socket by now was lost. */
		if (!err)
			err = drain(&r);
		if (err)
			break;
		tell_lost(&r, number);
		if (number > last)
			last = number;
	}
	return err;
}

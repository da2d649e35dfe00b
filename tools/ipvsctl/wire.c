// SPDX-License-Identifier: GPL-2.0
/* libnl packs and parses. The receive loop is ours, because libnl's loop waits
 * for ever and drops the extended ACK of a refusal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/ip_vs.h>
#include <linux/netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "backend.h"
#include "clock.h"
#include "err.h"
#include "opt.h"
#include "secret.h"
#include "wire.h"
#include "../../kernel/l4lb.h"

static struct nl_sock *sock;
static int family;
static int own_family;		/* negative: not there */
static char extack[256];
static uint32_t extack_offset;	/* of the bad attribute in the request, or 0 */
static bool enough;		/* ignore the rest of the answer */

struct answer {
	wire_reply_fn fn;
	void *arg;
	uint32_t seq;
	bool done, interrupted;
	int err;
};

const char *wire_extack(void)
{
	return extack;
}

int wire_enter_netns(void)
{
	static bool entered;
	char path[512];
	int fd, rc;

	if (!opt.netns || entered)
		return RC_OK;
	if (strchr(opt.netns, '/'))
		snprintf(path, sizeof(path), "%s", opt.netns);
	else if (strspn(opt.netns, "0123456789") == strlen(opt.netns))
		snprintf(path, sizeof(path), "/proc/%s/ns/net", opt.netns);
	else
		snprintf(path, sizeof(path), "/run/netns/%s", opt.netns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		rc = fail(errno == EACCES ? RC_PERM : RC_USAGE, NULL,
			  "no network namespace \"%s\": %s: %s", opt.netns,
			  path, strerror(errno));
		hint("try: ip netns list");
		return rc;
	}
	if (setns(fd, CLONE_NEWNET)) {
		rc = fail(errno == EPERM ? RC_PERM : RC_USAGE, NULL,
			  "cannot enter network namespace \"%s\": %s",
			  opt.netns, strerror(errno));
		close(fd);
		return rc;
	}
	close(fd);
	entered = true;
	return RC_OK;
}

/* The text sits after the copy of our message, which the kernel cuts short
 * when asked to (NETLINK_CAP_ACK).
 */
static void take_extack(struct nlmsghdr *nlh, const struct nlmsgerr *e)
{
	struct nlattr *tb[NLMSGERR_ATTR_MAX + 1];
	int skip = sizeof(*e);

	extack[0] = '\0';
	extack_offset = 0;
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		skip += (int)e->msg.nlmsg_len - NLMSG_HDRLEN;
	skip = NLMSG_ALIGN(skip);
	if (nlmsg_parse(nlh, skip, tb, NLMSGERR_ATTR_MAX, NULL) < 0)
		return;
	if (tb[NLMSGERR_ATTR_MSG])
		snprintf(extack, sizeof(extack), "%.*s",
			 nla_len(tb[NLMSGERR_ATTR_MSG]),
			 (char *)nla_data(tb[NLMSGERR_ATTR_MSG]));
	if (tb[NLMSGERR_ATTR_OFFS])
		extack_offset = nla_get_u32(tb[NLMSGERR_ATTR_OFFS]);
}

static void take_message(struct nlmsghdr *nlh, struct answer *reply)
{
	const struct nlmsgerr *e = nlmsg_data(nlh);

	if (nlh->nlmsg_seq != reply->seq)
		return;
	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		reply->interrupted = true;
	if (nlh->nlmsg_type == NLMSG_DONE) {
		if (nlmsg_datalen(nlh) >= (int)sizeof(int))
			reply->err = *(int *)nlmsg_data(nlh);
		reply->done = true;
	} else if (nlh->nlmsg_type == NLMSG_ERROR) {
		if (nlmsg_datalen(nlh) < (int)sizeof(*e))
			reply->err = -EBADMSG;
		else
			reply->err = e->error;
		if (reply->err && reply->err != -EBADMSG)
			take_extack(nlh, e);
		reply->done = true;
	} else if (nlh->nlmsg_type >= NLMSG_MIN_TYPE && reply->fn && !enough) {
		reply->fn(nlh, reply->arg);
	}
}

static int receive(struct answer *reply)
{
	struct pollfd pfd = { .fd = nl_socket_get_fd(sock), .events = POLLIN };

	while (!reply->done) {
		int64_t deadline = clock_ms(CLOCK_MONOTONIC) + opt.timeout_ms;
		unsigned char *buf = NULL;
		struct sockaddr_nl from;
		struct nlmsghdr *nlh;
		int n;

		do {
			int64_t left = deadline - clock_ms(CLOCK_MONOTONIC);

			n = left > 0 ? poll(&pfd, 1, (int)left) : 0;
		} while (n < 0 && errno == EINTR);
		if (n <= 0)
			return n ? -errno : -ETIMEDOUT;
		n = nl_recv(sock, &from, &buf, NULL);
		if (n <= 0)
			return n ? -EIO : -ECONNRESET;
		for (nlh = (struct nlmsghdr *)buf; nlmsg_ok(nlh, n);
		     nlh = nlmsg_next(nlh, &n))
			take_message(nlh, reply);
		free(buf);
		if (enough && !reply->done) {
			wire_close();
			return 0;
		}
	}
	if (!reply->err && reply->interrupted)
		return -EINTR;
	return reply->err;
}

void wire_enough(void)
{
	enough = true;
}

/* The message in hexadecimal digits, but without keys. */
static void dump(struct nlmsghdr *nlh)
{
	struct nl_msg *copy = nlmsg_convert(nlh);

	if (!copy)
		return;
	nlmsg_set_proto(copy, NETLINK_GENERIC);
	secret_hide(nlmsg_data(nlmsg_hdr(copy)), nlmsg_datalen(nlmsg_hdr(copy)));
	nl_msg_dump(copy, stderr);
	nlmsg_free(copy);
}

int wire_call(struct nl_msg *msg, wire_reply_fn fn, void *arg)
{
	struct answer reply = { .fn = fn, .arg = arg };
	struct nlmsghdr *nlh = nlmsg_hdr(msg);
	int err;

	extack[0] = '\0';
	enough = false;
	/* With an ACK at the end, answers with and without data read alike. */
	if ((nlh->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		nlh->nlmsg_flags |= NLM_F_ACK;
	nl_complete_msg(sock, msg);
	reply.seq = nlh->nlmsg_seq;
	if (opt.verbose > 1)
		dump(nlh);
	err = nl_send(sock, msg);
	/* There may be a key in it. */
	explicit_bzero(nlmsg_data(nlh), (size_t)nlmsg_datalen(nlh));
	nlmsg_free(msg);
	if (err < 0)
		return -EIO;
	return receive(&reply);
}

/* Cuts off the place in the batch that the kernel names by numbers: the caller
 * names the service itself.
 */
static void skip_numbers(void)
{
	unsigned int a, b;
	int n = 0;

	if (sscanf(extack, "service %u, server %u: %n", &a, &b, &n) < 2 || !n)
		sscanf(extack, "service %u: %n", &a, &n);
	memmove(extack, extack + n, strlen(extack + n) + 1);
}

int wire_own_call_raw(void *data, size_t len, int cmd, size_t *offset)
{
	struct genlmsghdr *genl = (void *)((char *)data + NLMSG_HDRLEN);
	int fd = nl_socket_get_fd(sock), size = (int)len + (1 << 16), err;
	struct nlmsghdr *nlh = data;
	struct answer reply = { 0 };

	*offset = 0;
	extack[0] = '\0';
	extack_offset = 0;
	if (len > INT32_MAX / 4)
		return -EMSGSIZE;
	if (len > 1 << 16 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		return -errno;
	*nlh = (struct nlmsghdr){
		.nlmsg_len = (uint32_t)len,
		.nlmsg_type = (uint16_t)own_family,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.nlmsg_seq = nl_socket_use_seq(sock),
		.nlmsg_pid = nl_socket_get_local_port(sock),
	};
	*genl = (struct genlmsghdr){ .cmd = (uint8_t)cmd,
				     .version = L4LB_GENL_VERSION };
	reply.seq = nlh->nlmsg_seq;
	if (opt.verbose > 1)
		dump(nlh);
	if (nl_sendto(sock, data, len) < 0)
		return -EIO;
	err = receive(&reply);
	*offset = extack_offset;
	skip_numbers();
	return err;
}

int wire_undo(struct nl_msg *msg)
{
	char kept[sizeof(extack)];
	int err;

	memcpy(kept, extack, sizeof(kept));
	err = wire_call(msg, NULL, NULL);
	memcpy(extack, kept, sizeof(kept));
	return err;
}

static void take_family(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[CTRL_ATTR_MAX + 1];

	if (genlmsg_parse(nlh, 0, tb, CTRL_ATTR_MAX, NULL) >= 0 &&
	    tb[CTRL_ATTR_FAMILY_ID])
		*(int *)arg = nla_get_u16(tb[CTRL_ATTR_FAMILY_ID]);
}

static int ask_family(const char *name, wire_reply_fn take, void *arg)
{
	struct nl_msg *msg = nlmsg_alloc();

	if (!msg)
		return -ENOMEM;
	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, GENL_ID_CTRL, 0, 0,
		    CTRL_CMD_GETFAMILY, 1);
	nla_put_string(msg, CTRL_ATTR_FAMILY_NAME, name);
	return wire_call(msg, take, arg);
}

/* The family's id, or -errno. Asking makes the kernel load the module. */
static int resolve(const char *name)
{
	int id = -ENOENT, err = ask_family(name, take_family, &id);

	return err ? err : id;
}

struct group_search {
	const char *name;
	int number;
};

static void take_groups(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[CTRL_ATTR_MAX + 1], *group[CTRL_ATTR_MCAST_GRP_MAX + 1];
	struct group_search *s = arg;
	struct nlattr *nest;
	int left;

	if (genlmsg_parse(nlh, 0, tb, CTRL_ATTR_MAX, NULL) < 0 ||
	    !tb[CTRL_ATTR_MCAST_GROUPS])
		return;
	nla_for_each_nested(nest, tb[CTRL_ATTR_MCAST_GROUPS], left)
		if (nla_parse_nested(group, CTRL_ATTR_MCAST_GRP_MAX, nest, NULL) >= 0 &&
		    group[CTRL_ATTR_MCAST_GRP_NAME] && group[CTRL_ATTR_MCAST_GRP_ID] &&
		    !nla_strcmp(group[CTRL_ATTR_MCAST_GRP_NAME], s->name))
			s->number = (int)nla_get_u32(group[CTRL_ATTR_MCAST_GRP_ID]);
}

/* Not by libnl, which would wait for an answer without an end. */
int wire_own_group(const char *name)
{
	struct group_search s = { name, -ENOENT };
	int err = ask_family(L4LB_GENL_NAME, take_groups, &s);

	return err ? err : s.number;
}

static int socket_open(void)
{
	int on = 1, fd;

	if (sock)
		return RC_OK;
	sock = nl_socket_alloc();
	if (!sock || genl_connect(sock) < 0) {
		wire_close();
		return fail(RC_BACKEND, NULL,
			    "cannot open a generic netlink socket: %s",
			    strerror(errno));
	}
	fd = nl_socket_get_fd(sock);
	/* Kernels too old for these still answer, without the sentence. */
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	nl_socket_set_nonblocking(sock);
	nl_socket_enable_msg_peek(sock);
	/* Pieces of a dump are as large as recv()'s buffer, up to this. */
	nl_socket_set_msg_buf_size(sock, 1 << 15);
	nl_socket_set_buffer_size(sock, 1 << 18, 0);
	return RC_OK;
}

int wire_open(void)
{
	int rc;

	if (family > 0)
		return RC_OK;
	rc = wire_enter_netns();
	if (!rc)
		rc = socket_open();
	if (rc)
		return rc;
	family = resolve(IPVS_GENL_NAME);
	/* With in-tree ip_vs the kernel is not asked: it would look for a module on disk. */
	own_family = family > 0 && backend_is_l4lb() ? resolve(L4LB_GENL_NAME)
						      : -ENOENT;
	/* A kernel that is busy does not lack the family. */
	if (family == -ETIMEDOUT || own_family == -ETIMEDOUT) {
		wire_close();
		return fail(RC_TIMEOUT, NULL, "the kernel did not answer within %u ms",
			    opt.timeout_ms);
	}
	return family > 0 ? RC_OK : backend_missing();
}

bool wire_has_own(void)
{
	return own_family > 0;
}

void wire_close(void)
{
	nl_socket_free(sock);
	sock = NULL;
	family = 0;
	own_family = 0;
}

static struct nl_msg *request(int id, int cmd, int flags, uint8_t version)
{
	struct nl_msg *msg = nlmsg_alloc();

	if (msg)
		genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, id, 0, flags,
			    (uint8_t)cmd, version);
	return msg;
}

struct nl_msg *wire_request(int cmd, int flags)
{
	return request(family, cmd, flags, IPVS_GENL_VERSION);
}

struct nl_msg *wire_own_request(int cmd, int flags)
{
	return request(own_family, cmd, flags, L4LB_GENL_VERSION);
}

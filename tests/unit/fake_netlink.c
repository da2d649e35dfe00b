// SPDX-License-Identifier: GPL-2.0
/* Preloaded into ipvsctl: tests/host/answers.py, at the socket FAKE_ANSWERS, answers its
 * generic netlink messages in place of the kernel, and l4lb seems to be loaded. Files of
 * /proc/net are those of the directory FAKE_PROC.
 *
 * No answer stands for a kernel that hangs. A wait with an end is over at once then, and its
 * length is told; one without an end is told, too, and ends the program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/netlink.h>

struct nl_sock;
int nl_sendto(struct nl_sock *sock, void *data, size_t len);
int nl_socket_get_fd(const struct nl_sock *sock);

enum { FDS = 1024, ANSWERS = 64, HANGS = 99 };

struct answer {
	void *data;
	size_t len;
};

/* Of each socket: is it ours, and what has not been read yet. */
static struct line {
	bool ours;
	struct answer answers[ANSWERS];
	size_t first, last;
} lines[FDS];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static struct line *line_of(int fd)
{
	return fd >= 0 && fd < FDS && lines[fd].ours ? &lines[fd] : NULL;
}

/* One connection to the test; what is sent there: a word and its data. */
static int test(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	static int fd = -1;

	if (fd >= 0)
		return fd;
	strncpy(to.sun_path, getenv("FAKE_ANSWERS"), sizeof(to.sun_path) - 1);
	fd = REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		_exit(HANGS + 1);
	return fd;
}

static void tell_wait(long ms)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "wait %ld", ms);

	REAL(send)(test(), text, (size_t)n, 0);
	if (ms < 0)
		_exit(HANGS);
}

/* The test's answers; an empty one is the last. */
static void ask(struct line *line, const void *data, size_t len)
{
	static char buffer[1 << 18];
	ssize_t n;

	REAL(send)(test(), data, len, 0);
	while ((n = REAL(recv)(test(), buffer, sizeof(buffer), 0)) > 1 && line->last < ANSWERS) {
		struct answer *a = &line->answers[line->last++];

		a->data = malloc((size_t)n);
		a->len = (size_t)n;
		memcpy(a->data, buffer, (size_t)n);
	}
}

int socket(int domain, int type, int protocol)
{
	int fd = REAL(socket)(domain, type, protocol);

	if (fd >= 0 && fd < FDS)
		lines[fd] = (struct line){
			.ours = domain == AF_NETLINK && protocol == NETLINK_GENERIC
		};
	return fd;
}

int close(int fd)
{
	if (line_of(fd))
		lines[fd].ours = false;
	return REAL(close)(fd);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct line *line = line_of(fd);
	static char whole[1 << 18];
	size_t len = 0, i;

	if (!line)
		return REAL(sendmsg)(fd, msg, flags);
	for (i = 0; i < msg->msg_iovlen; i++) {
		memcpy(whole + len, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		len += msg->msg_iov[i].iov_len;
	}
	ask(line, whole, len);
	return (ssize_t)len;
}

/* Of libnl; it would use sendto(). */
int nl_sendto(struct nl_sock *sock, void *data, size_t len)
{
	struct line *line = line_of(nl_socket_get_fd(sock));

	if (!line)
		return REAL(nl_sendto)(sock, data, len);
	ask(line, data, len);
	return (int)len;
}

/* A socket that blocks waits for ever, unless it was given an end. */
static ssize_t nothing(int fd, int flags)
{
	struct timeval end = { 0 };
	socklen_t size = sizeof(end);

	if (!(flags & MSG_DONTWAIT) && !(fcntl(fd, F_GETFL) & O_NONBLOCK)) {
		getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &end, &size);
		tell_wait(end.tv_sec || end.tv_usec ?
			  end.tv_sec * 1000 + end.tv_usec / 1000 : -1);
	}
	errno = EAGAIN;
	return -1;
}

static ssize_t take(int fd, struct line *line, void *to, size_t room, int flags)
{
	struct answer *a = &line->answers[line->first];
	size_t n;

	if (line->first == line->last)
		return nothing(fd, flags);
	n = a->len < room ? a->len : room;
	memcpy(to, a->data, n);
	if (!(flags & MSG_PEEK))
		line->first++;
	return (ssize_t)(flags & MSG_TRUNC ? a->len : n);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct line *line = line_of(fd);
	ssize_t n;

	if (!line)
		return REAL(recvmsg)(fd, msg, flags);
	n = take(fd, line, msg->msg_iov->iov_base, msg->msg_iov->iov_len, flags);
	if (n < 0)
		return n;
	msg->msg_flags = (size_t)n > msg->msg_iov->iov_len ? MSG_TRUNC : 0;
	msg->msg_namelen = sizeof(struct sockaddr_nl);
	msg->msg_controllen = 0;
	memset(msg->msg_name, 0, sizeof(struct sockaddr_nl));
	((struct sockaddr_nl *)msg->msg_name)->nl_family = AF_NETLINK;
	return n;
}

ssize_t recv(int fd, void *to, size_t room, int flags)
{
	struct line *line = line_of(fd);

	return line ? take(fd, line, to, room, flags) : REAL(recv)(fd, to, room, flags);
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct line *line = n ? line_of(fds->fd) : NULL;

	if (!line || n > 1)
		return REAL(poll)(fds, n, ms);
	if (line->first < line->last) {
		fds->revents = POLLIN;
		return 1;
	}
	tell_wait(ms);
	return 0;
}

/* Of commands that go on until they are interrupted. */
int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *left, const sigset_t *mask)
{
	nfds_t i;

	for (i = 0; i < n; i++)
		if (line_of(fds[i].fd)) {
			REAL(send)(test(), "listens", 7, 0);
			_exit(0);
		}
	return REAL(ppoll)(fds, n, left, mask);
}

/* The module's files. */
FILE *fopen(const char *path, const char *mode)
{
	static const char net[] = "/proc/net/";
	char other[256];

	if (strncmp(path, net, sizeof(net) - 1))
		return REAL(fopen)(path, mode);
	snprintf(other, sizeof(other), "%s/net/%s", getenv("FAKE_PROC"), path + sizeof(net) - 1);
	return REAL(fopen)(other, mode);
}

int access(const char *path, int mode)
{
	if (!strcmp(path, "/sys/module/l4lb"))
		return 0;
	return REAL(access)(path, mode);
}

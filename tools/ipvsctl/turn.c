// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "err.h"
#include "opt.h"
#include "turn.h"

#define PLACE "/run/ipvsctl"

enum { RETRY_MS = 50 };

/* Only root can enter the directory. */
static void path_of(char *path, size_t size, const char *what)
{
	struct stat st = { 0 };

	mkdir(PLACE, 0700);
	stat("/proc/self/ns/net", &st);
	snprintf(path, size, PLACE "/%s,%llu", what,
		 (unsigned long long)st.st_ino);
}

static struct sockaddr_un address(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	path_of(a.sun_path, sizeof(a.sun_path), "confirm");
	return a;
}

int turn_ask(const char *word, char *answer, size_t size)
{
	const struct timeval limit = { .tv_sec = 5 };
	struct sockaddr_un a = address();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ssize_t n = -1;
	int err = 0;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		err = errno;
	else if (send(fd, word, strlen(word), MSG_NOSIGNAL) > 0)
		n = recv(fd, answer, size - 1, 0);
	close(fd);
	errno = err;
	if (n <= 0)
		return -1;
	answer[n] = '\0';
	return 0;
}

static int refuse_pending(const char *left)
{
	int rc = fail(RC_EXISTS, NULL,
		      "a change waits for its confirmation, for %s s more",
		      left);

	hint("to keep it: ipvsctl confirm; otherwise it is taken back then");
	return rc;
}

static int no_turn(const char *path)
{
	bool denied = errno == EACCES;
	int rc = fail(denied ? RC_PERM : RC_USAGE, NULL,
		      "cannot write %s: %s: --confirm needs it", path,
		      strerror(errno));

	if (denied)
		hint("try: sudo ipvsctl ...");
	return rc;
}

int turn_take(int must)
{
	uint32_t waited = 0;
	char path[128], left[32];
	int fd;

	path_of(path, sizeof(path), "turn");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 && !must)
		return RC_OK;
	if (fd < 0)
		return no_turn(path);
	/* The descriptor stays open until the end. */
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (!turn_ask("left", left, sizeof(left)))
			return refuse_pending(left);
		if (waited > opt.timeout_ms)
			return fail(RC_TIMEOUT, NULL,
				    "another ipvsctl apply or rollback did not end within %u ms",
				    opt.timeout_ms);
		usleep(RETRY_MS * 1000);
		waited += RETRY_MS;
	}
	return RC_OK;
}

int turn_listen(void)
{
	struct sockaddr_un a = address();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	/* It may be left from a process that was killed; the turn is ours. */
	unlink(a.sun_path);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) &&
	    !listen(fd, 8))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

void turn_deaf(int fd)
{
	struct sockaddr_un a = address();

	unlink(a.sun_path);
	close(fd);
}

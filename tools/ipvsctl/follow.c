// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "follow.h"
#include "refuse.h"

static atomic_int stopped;	/* lock-free: for the handler, too */

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

void follow_begin(void)
{
	const struct sigaction action = { .sa_handler = stop };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* The reader of our output may go while nothing happens. Signals wait until
 * ppoll() can see them.
 */
static int wait_for(int fd)
{
	struct pollfd fds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = STDOUT_FILENO },
	};
	sigset_t signals, before;
	int err = 0;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, &before);
	if (!stopped && ppoll(fds, 2, NULL, &before) < 0 && errno != EINTR)
		err = -errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (!err && fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		return 1;
	return err;
}

int follow(int fd, bool (*read)(int *err, void *arg), void *arg)
{
	int err = 0;

	while (!err && !stopped) {
		if (!read(&err, arg) || err)
			break;
		if (fflush(stdout) || ferror(stdout))
			return 1;
		err = wait_for(fd);
	}
	return err;
}

int follow_failed(int err, const char *what)
{
	int rc;

	if (err != -ENODEV)
		return refuse(err, NULL, what);
	rc = fail(RC_BACKEND, NULL, "the module was unloaded");
	hint("start this again when the module is loaded");
	return rc;
}

const char *follow_time(long long nanoseconds)
{
	time_t seconds = (time_t)(nanoseconds / 1000000000);
	long micros = (long)(nanoseconds % 1000000000 / 1000);
	char date[32], zone[8];
	static char text[64];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(text, sizeof(text), "%s.%06ld%s", date, micros, zone);
	return text;
}

// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "err.h"
#include "guard.h"
#include "history.h"
#include "opt.h"
#include "plan.h"
#include "turn.h"
#include "undo.h"
#include "wire.h"

enum { TRIES = 5 };

static int parent = -1;		/* gets a byte when the change is made */

/* The other one's result, once it waits or has ended. */
static int follow(pid_t pid, int fd)
{
	int status = 0;
	ssize_t n;
	char c;

	do {
		n = read(fd, &c, 1);
	} while (n < 0 && errno == EINTR);
	close(fd);
	if (n == 1)
		return opt.given & OPT_DETAILED ? RC_DIFF : RC_OK;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return fail(RC_REFUSED, "apply", "was killed by signal %d",
		    WTERMSIG(status));
}

bool guard_begin(int *rc)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE,
				       SIGTERM, SIGTSTP };
	int fd[2];
	size_t i;
	pid_t pid;

	fflush(NULL);
	if (pipe2(fd, O_CLOEXEC)) {
		*rc = fail(RC_REFUSED, "apply", "--confirm: no pipe: %s",
			   strerror(errno));
		return false;
	}
	pid = fork();
	if (pid < 0) {
		*rc = fail(RC_REFUSED, "apply", "--confirm: no process: %s",
			   strerror(errno));
		return false;
	}
	close(fd[!!pid]);
	if (pid) {
		*rc = follow(pid, fd[0]);
		return false;
	}
	parent = fd[1];
	setsid();
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	return true;
}

/* ---- waiting ---- */

/* Also counts while the machine sleeps. */
/* Answers one question; true if it was the confirmation. */
static bool answer(int listener, int64_t left_ms)
{
	const struct timeval limit = { .tv_sec = 1 };
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char word[16] = "", text[32];
	bool confirmed;

	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (recv(fd, word, sizeof(word) - 1, 0) < 0)
		word[0] = '\0';
	confirmed = !strcmp(word, "confirm");
	if (confirmed) {
		history_commit(NULL);
		snprintf(text, sizeof(text), "confirmed");
	} else {
		snprintf(text, sizeof(text), "%lld",
			 (long long)(left_ms + 999) / 1000);
	}
	send(fd, text, strlen(text), MSG_NOSIGNAL);
	close(fd);
	return confirmed;
}

static bool wait_confirmed(int listener, int64_t deadline)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	int64_t left;

	while ((left = deadline - clock_ms(CLOCK_BOOTTIME)) > 0) {
		/* Not longer: poll's clock stops while the machine sleeps. */
		if (poll(&pfd, 1, left > 1000 ? 1000 : (int)left) > 0 &&
		    answer(listener, left))
			return true;
	}
	return false;
}

static void detach(void)
{
	int fd = open("/dev/null", O_RDWR);

	fflush(NULL);
	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	if (chdir("/"))
		syslog(LOG_DEBUG, "no change to /");
}

static void take_back(struct undo *u)
{
	struct plan p;
	int i, rc = RC_REFUSED;

	for (i = 0; i < TRIES && rc; i++) {
		if (i)
			sleep(1);
		wire_close();
		rc = wire_open();
		if (!rc)
			rc = undo_run(u, &p);
	}
	if (rc) {
		syslog(LOG_ERR, "the change was not confirmed, but could not be taken back");
		return;
	}
	history_drop();
	if (u->xdp_stays)
		syslog(LOG_ERR, "XDP is not as before on all devices: see ipvsctl fast-path");
	syslog(LOG_NOTICE, "the change was not confirmed within %u s: %zu services are as before",
	       opt.confirm_secs, u->before.n + u->after.n);
}

void guard_wait(struct undo *u)
{
	int listener = turn_listen();
	int64_t deadline = clock_ms(CLOCK_BOOTTIME) + (int64_t)opt.confirm_secs * 1000;
	bool confirmed;

	openlog("ipvsctl", LOG_PID, LOG_DAEMON);
	detach();
	opt.quiet = true;
	opt.verbose = 0;
	wire_close();
	if (write(parent, "", 1) != 1)
		syslog(LOG_INFO, "apply has gone");
	close(parent);
	confirmed = wait_confirmed(listener, deadline);
	turn_deaf(listener);
	if (!confirmed)
		take_back(u);
	exit(0);
}

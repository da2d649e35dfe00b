// SPDX-License-Identifier: GPL-2.0
/* The times are multiples of the interval after the first one, so that the work
 * in between does not add up.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "err.h"
#include "opt.h"
#include "out.h"
#include "repeat.h"

static atomic_bool stopped;	/* lock-free: for the handler, too */

static void stop(int sig)
{
	(void)sig;
	stopped = true;
}

void repeat_catch(void)
{
	struct sigaction act = {
		.sa_handler = stop,
		/* The second time it ends a program that hangs in a write. */
		.sa_flags = SA_RESTART | SA_RESETHAND,
	};

	sigemptyset(&act.sa_mask);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

void repeat_stop(void)
{
	stopped = true;
}

double repeat_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + (double)(ts.tv_nsec / 1000000) / 1000;
}

/* The time from now to @then; negative if that has passed. */
static struct timespec until(const struct timespec *then)
{
	struct timespec now, left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left.tv_sec = then->tv_sec - now.tv_sec;
	left.tv_nsec = then->tv_nsec - now.tv_nsec;
	if (left.tv_nsec < 0) {
		left.tv_nsec += 1000000000;
		left.tv_sec--;
	}
	return left;
}

bool repeat_stopped(void)
{
	return stopped;
}

int repeat_poll(struct pollfd *fds, unsigned int n, const struct timespec *left)
{
	sigset_t block, before;
	int ready = -1;

	sigemptyset(&block);
	sigaddset(&block, SIGINT);
	sigaddset(&block, SIGTERM);
	sigprocmask(SIG_BLOCK, &block, &before);
	if (!stopped)
		ready = ppoll(fds, n, left, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ready;
}

/* Sleeps until the next multiple of @secs after the first call; those that have
 * passed already are left out. False if it was interrupted.
 */
static bool wait_for_next(unsigned int secs)
{
	static struct timespec next;
	struct timespec left;

	if (!next.tv_sec)
		clock_gettime(CLOCK_MONOTONIC, &next);
	do
		next.tv_sec += secs;
	while (until(&next).tv_sec < 0);
	while (!stopped && (left = until(&next)).tv_sec >= 0)
		repeat_poll(NULL, 0, &left);
	return !stopped;
}

static int next_print(int (*print)(void *arg), void *arg)
{
	int rc;

	/* Tables are kept apart; JSON has a line for each document. */
	if (!opt.json && !opt.output)
		putchar('\n');
	rc = print(arg);
	return rc ? rc : out_finish();
}

int repeat_run(int (*print)(void *arg), void *arg)
{
	int rc;

	if (opt.watch_secs)
		repeat_catch();
	rc = print(arg);
	if (!rc && opt.watch_secs)
		rc = out_finish();
	while (!rc && opt.watch_secs && wait_for_next(opt.watch_secs))
		rc = next_print(print, arg);
	return rc;
}

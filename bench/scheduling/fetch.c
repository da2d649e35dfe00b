// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fetch.h"

static struct fetch *oldest, *newest;
static fetch_done *when_done;
static int epoll;

static void finish(struct fetch *f, uint64_t now, enum fault fault)
{
	*(f->older ? &f->older->newer : &oldest) = f->newer;
	*(f->newer ? &f->newer->older : &newest) = f->older;
	close(f->fd);
	when_done(f, now, fault);
}

/* Parses the head of an answer once it is complete. */
static void parse_head(struct fetch *f)
{
	char *end = memmem(f->text, f->got, "\r\n\r\n", 4), *field;

	if (!end)
		return;
	*end = 0;
	f->head = end + 4 - f->text;
	field = strstr(f->text, "\r\nReal-Server: ");
	if (field)
		f->server = atoi(field + 15);
	f->hit = !!strstr(f->text, "\r\nCache: hit");
	field = strstr(f->text, "\r\nContent-Length: ");
	if (field)
		f->length = strtoul(field + 18, NULL, 10);
	f->good = strstr(f->text, " 200 ") && f->server && field;
}

static void receive(struct fetch *f, uint64_t now)
{
	static char rest[1 << 20];
	ssize_t n;

	for (;;) {
		if (f->head)
			n = read(f->fd, rest, sizeof(rest));
		else
			n = read(f->fd, f->text + f->got, sizeof(f->text) - f->got);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			break;
		f->got += n;
		if (!f->head)
			parse_head(f);
		if (!f->head && f->got == sizeof(f->text))
			break;
	}
	finish(f, now, n == 0 && f->good && f->got == f->head + f->length ?
	       FAULT_NONE : FAULT_BROKEN);
}

static void ask(struct fetch *f, uint64_t now)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "GET /%u HTTP/1.0\r\nHost: vip\r\n"
			 "User-Agent: l4lb-bench\r\nAccept: */*\r\n\r\n", f->document);
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = f };

	if (send(f->fd, text, n, MSG_NOSIGNAL) != n)
		finish(f, now, FAULT_CONNECT);
	else if (epoll_ctl(epoll, EPOLL_CTL_MOD, f->fd, &ev))
		err(1, "epoll_ctl");
}

void fetch_begin(struct fetch *f, uint32_t document, const struct sockaddr_in *from,
		 const struct sockaddr_in *to, uint64_t now)
{
	struct epoll_event ev = { .events = EPOLLOUT, .data.ptr = f };

	f->document = document;
	f->begun = now;
	f->length = 0;
	f->server = 0;
	f->head = 0;
	f->got = 0;
	f->hit = false;
	f->good = false;
	f->newer = NULL;
	f->older = newest;
	*(newest ? &newest->newer : &oldest) = f;
	newest = f;
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (f->fd < 0)
		err(1, "socket");
	if (bind(f->fd, (const struct sockaddr *)from, sizeof(*from)))
		err(1, "bind");
	if (connect(f->fd, (const struct sockaddr *)to, sizeof(*to)) && errno != EINPROGRESS)
		finish(f, now, FAULT_CONNECT);
	else if (epoll_ctl(epoll, EPOLL_CTL_ADD, f->fd, &ev))
		err(1, "epoll_ctl");
}

bool fetch_any(void)
{
	return oldest;
}

void fetch_go_on(uint64_t until, uint64_t give_up)
{
	struct epoll_event events[256];
	uint64_t now = now_ns();
	struct timespec ts;
	int n, i;

	while (oldest && oldest->begun + give_up <= now)
		finish(oldest, now, FAULT_TIMEOUT);
	if (oldest && oldest->begun + give_up < until)
		until = oldest->begun + give_up;
	ts = timespec_of(until > now ? until - now : 0);
	n = epoll_pwait2(epoll, events, 256, &ts, NULL);
	if (n < 0 && errno != EINTR)
		err(1, "epoll_pwait2");
	now = now_ns();
	for (i = 0; i < n; i++) {
		struct fetch *f = events[i].data.ptr;

		if (events[i].events & EPOLLOUT)
			ask(f, now);
		else
			receive(f, now);
	}
}

/* Overload keeps thousands of requests waiting: allow as many files as possible. */
static void raise_files(void)
{
	struct rlimit files = { 65536, 65536 };

	if (!setrlimit(RLIMIT_NOFILE, &files))
		return;
	if (getrlimit(RLIMIT_NOFILE, &files))
		err(1, "getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files))
		err(1, "setrlimit");
}

void fetch_setup(fetch_done *done)
{
	when_done = done;
	epoll = epoll_create1(0);
	if (epoll < 0)
		err(1, "epoll_create1");
	raise_files();
}

uint64_t fetch_start(void)
{
	struct timespec second;

	prctl(PR_SET_TIMERSLACK, 1UL);
	clock_gettime(CLOCK_MONOTONIC, &second);
	second = (struct timespec){ .tv_sec = second.tv_sec + 1 };
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &second, NULL);
	if (errno)
		err(1, "clock_nanosleep");
	return now_ns();
}

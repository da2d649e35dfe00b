// SPDX-License-Identifier: GPL-2.0
/*
 * An open-loop web client: sends each request of a trace at its time, whatever
 * has become of those before, and writes down how long each took.
 *
 *   load TRACE OUTCOMES CLIENTS VIPS PORT GIVE_UP
 *
 * TRACE and OUTCOMES: see trace.h. CLIENTS and VIPS: the first address of
 * each; an index of the trace counts on from there. GIVE_UP: seconds after
 * which a request has failed. Every request is a connection of its own from a
 * port that its address has not used before. Prints a line a (virtual) second:
 * seconds, answered, failed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trace.h"

#define FIRST_PORT	1024
#define PORTS		(65536 - FIRST_PORT)

struct fetch {
	size_t		index;		/* in the trace */
	int		fd;
	uint64_t	begun;
	size_t		head, got;	/* bytes of the answer's head; of all */
	unsigned int	length;		/* that its head announces */
	bool		good;		/* says the head */
	struct fetch	*older, *newer;	/* in the order of begun */
	char		text[1024];
};

static const struct arrival *trace;
static struct outcome *outcomes;
static size_t total, answered, failed;
static struct fetch *oldest, *newest;
static uint32_t clients, vips, used_ports[65536];
static uint16_t port;
static int epoll;

static void finish(struct fetch *f, uint64_t now, enum fault fault)
{
	struct outcome *o = &outcomes[f->index];

	o->took = now - f->begun;
	o->bytes = f->length;
	o->fault = fault;
	if (fault)
		failed++;
	else
		answered++;
	*(f->older ? &f->older->newer : &oldest) = f->newer;
	*(f->newer ? &f->newer->older : &newest) = f->older;
	close(f->fd);
	free(f);
}

/* The head of an answer, once it is whole. */
static void parse_head(struct fetch *f)
{
	struct outcome *o = &outcomes[f->index];
	char *end = memmem(f->text, f->got, "\r\n\r\n", 4), *field;

	if (!end)
		return;
	*end = 0;
	f->head = end + 4 - f->text;
	field = strstr(f->text, "\r\nReal-Server: ");
	if (field)
		o->server = atoi(field + 15);
	o->hit = !!strstr(f->text, "\r\nCache: hit");
	field = strstr(f->text, "\r\nContent-Length: ");
	if (field)
		f->length = strtoul(field + 18, NULL, 10);
	f->good = strstr(f->text, " 200 ") && o->server && field;
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
			 "User-Agent: l4lb-bench\r\nAccept: */*\r\n\r\n",
			 trace[f->index].document);
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = f };

	if (send(f->fd, text, n, MSG_NOSIGNAL) != n)
		finish(f, now, FAULT_CONNECT);
	else if (epoll_ctl(epoll, EPOLL_CTL_MOD, f->fd, &ev))
		err(1, "epoll_ctl");
}

static struct sockaddr_in address_of(uint32_t base, uint16_t index, uint16_t at)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(at),
				     .sin_addr.s_addr = htonl(base + index) };
}

static void begin(size_t index, uint64_t now)
{
	const struct arrival *a = &trace[index];
	uint32_t used = used_ports[a->client]++;
	struct sockaddr_in from = address_of(clients, a->client, FIRST_PORT + used % PORTS);
	struct sockaddr_in to = address_of(vips, a->vip, port);
	struct fetch *f = calloc(1, sizeof(*f));
	struct epoll_event ev = { .events = EPOLLOUT, .data.ptr = f };

	if (!f)
		err(1, "calloc");
	if (used >= PORTS)
		errx(1, "a client address has no unused port left: give it fewer requests");
	f->index = index;
	f->begun = now;
	f->older = newest;
	*(newest ? &newest->newer : &oldest) = f;
	newest = f;
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (f->fd < 0)
		err(1, "socket");
	if (bind(f->fd, (struct sockaddr *)&from, sizeof(from)))
		err(1, "bind");
	if (connect(f->fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS)
		finish(f, now, FAULT_CONNECT);
	else if (epoll_ctl(epoll, EPOLL_CTL_ADD, f->fd, &ev))
		err(1, "epoll_ctl");
}

static void replay(uint64_t give_up)
{
	uint64_t start = now_ns(), next_line = NSEC_PER_SEC;
	struct epoll_event events[256];
	size_t begun = 0;

	while (begun < total || oldest) {
		uint64_t now = now_ns(), wake = start + next_line;
		struct timespec ts;
		int n, i;

		for (; begun < total && trace[begun].at <= now - start; begun++)
			begin(begun, now);
		while (oldest && oldest->begun + give_up <= now)
			finish(oldest, now, FAULT_TIMEOUT);
		if (now - start >= next_line) {
			printf("%llu %zu %zu\n", (unsigned long long)(next_line / NSEC_PER_SEC),
			       answered, failed);
			fflush(stdout);
			next_line += NSEC_PER_SEC;
			wake += NSEC_PER_SEC;
		}
		if (begun < total && start + trace[begun].at < wake)
			wake = start + trace[begun].at;
		if (oldest && oldest->begun + give_up < wake)
			wake = oldest->begun + give_up;
		ts = timespec_of(wake > now ? wake - now : 0);
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
}

/* Overload keeps thousands of requests waiting; take what we may have. */
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

int main(int argc, char **argv)
{
	struct in_addr a, v;
	FILE *out;
	size_t i;

	if (argc != 7)
		errx(2, "6 arguments are needed, see the top of load.c");
	trace = read_entries(argv[1], sizeof(*trace), &total);
	if (inet_pton(AF_INET, argv[3], &a) != 1 || inet_pton(AF_INET, argv[4], &v) != 1)
		errx(2, "'%s' or '%s' is not an IPv4 address", argv[3], argv[4]);
	clients = ntohl(a.s_addr);
	vips = ntohl(v.s_addr);
	port = parse_number(argv[5], 65535);
	for (i = 1; i < total; i++)
		if (trace[i].at < trace[i - 1].at)
			errx(1, "%s: entry %zu is earlier than the one before", argv[1], i);
	outcomes = calloc(total, sizeof(*outcomes));
	epoll = epoll_create1(0);
	if (!outcomes || epoll < 0)
		err(1, "setting up");
	raise_files();
	replay(parse_number(argv[6], 3600) * NSEC_PER_SEC);
	out = fopen(argv[2], "wb");
	if (!out || fwrite(outcomes, sizeof(*outcomes), total, out) != total || fclose(out))
		err(1, "%s", argv[2]);
}

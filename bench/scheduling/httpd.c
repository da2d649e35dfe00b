// SPDX-License-Identifier: GPL-2.0
/*
 * A web server with explicit costs: real HTTP over real sockets, but the time
 * that its processor and disk take is a model. Meant for a kernel in virtual
 * time, in which the program's own computing takes no time.
 *
 *   httpd ADDRESS PORT NUMBER SIZES CPU_REQUEST CPU_BYTE DISK_SEEK DISK_RATE \
 *         CACHE WORKERS BACKLOG [SLOW_FROM SLOW_TO FACTOR]
 *
 * Answers GET /N with document N, of as many bytes as entry N of the file
 * SIZES says (32-bit numbers). A request takes CPU_REQUEST ns of the processor
 * and CPU_BYTE ns for each byte. A document that is not in the cache (CACHE
 * bytes, LRU) then takes DISK_SEEK ns of the disk and is read at DISK_RATE
 * bytes/s. Processor and disk serve in the order of arrival. At most WORKERS
 * requests are in progress, others wait in the kernel's BACKLOG. The cache
 * starts with the first documents, which are the most popular. Prints "ready"
 * when it listens. From SLOW_FROM ns after that to SLOW_TO, what begins takes FACTOR
 * times as long.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trace.h"

struct document {
	uint32_t	size;
	bool		cached;		/* or on its way from the disk */
	uint64_t	there;		/* when the disk has read it */
	struct document	*newer, *older;
};

struct request {
	int		fd;
	bool		hit;
	uint64_t	due;		/* when it leaves its queue */
	struct document	*doc;
	struct request	*next;
	size_t		head, length, sent;
	char		text[512];	/* the request, then the answer's head */
};

/* Sorted by due. */
struct queue {
	struct request	*first;
	uint64_t	free;		/* when the resource will be idle */
};

static struct {
	unsigned long	number, cpu_request, cpu_byte, disk_seek, disk_rate;
	unsigned long	cache, workers;
} cost;

static struct {
	uint64_t	from, to;
	unsigned long	factor;
} slow;

static struct queue cpu, disk;
static struct document *docs, *newest, *oldest;
static size_t ndocs;
static unsigned long cached;		/* bytes */
static unsigned long under_way;
static int epoll, listener;
static char body[65536];

/* A queue of requests that one resource serves. */

static void insert(struct queue *q, struct request *r, uint64_t due)
{
	struct request **at = &q->first;

	while (*at && (*at)->due <= due)
		at = &(*at)->next;
	r->due = due;
	r->next = *at;
	*at = r;
}

static void enqueue(struct queue *q, struct request *r, uint64_t now, uint64_t work)
{
	uint64_t begin = q->free > now ? q->free : now;

	if (begin >= slow.from && begin < slow.to)
		work *= slow.factor;
	q->free = begin + work;
	insert(q, r, q->free);
}

static struct request *dequeue(struct queue *q)
{
	struct request *r = q->first;

	q->first = r->next;
	return r;
}

/* The cache: a list by last use. */

static void unlink_document(struct document *d)
{
	*(d->newer ? &d->newer->older : &newest) = d->older;
	*(d->older ? &d->older->newer : &oldest) = d->newer;
	d->newer = NULL;
	d->older = NULL;
}

static void use_document(struct document *d)
{
	if (d->cached)
		unlink_document(d);
	else
		cached += d->size;
	d->cached = true;
	d->older = newest;
	*(newest ? &newest->newer : &oldest) = d;
	newest = d;
	while (cached > cost.cache && oldest != d) {
		struct document *victim = oldest;

		unlink_document(victim);
		victim->cached = false;
		cached -= victim->size;
	}
}

/* Begins with the most popular documents, so that a run need not load them. */
static void fill_cache(void)
{
	size_t n = 0;
	unsigned long sum = 0;

	while (n < ndocs && sum + docs[n].size <= cost.cache)
		sum += docs[n++].size;
	while (n)
		use_document(&docs[--n]);
}

/* The steps of a request: read, processor, perhaps disk, answer. */

static void watch(struct request *r, int op, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = r };

	if (epoll_ctl(epoll, op, r ? r->fd : listener, &ev))
		err(1, "epoll_ctl");
}

static void end_request(struct request *r)
{
	close(r->fd);
	free(r);
	/* A worker is free again: accept connections that wait for one. */
	if (under_way-- == cost.workers)
		watch(NULL, EPOLL_CTL_MOD, EPOLLIN);
}

static void answer(struct request *r, bool watched)
{
	while (r->sent < r->head + r->doc->size) {
		bool in_head = r->sent < r->head;
		size_t left = (in_head ? r->head : r->head + r->doc->size) - r->sent;
		ssize_t n;

		if (left > sizeof(body))
			left = sizeof(body);
		n = send(r->fd, in_head ? r->text + r->sent : body, left,
			 MSG_NOSIGNAL | (in_head && r->doc->size ? MSG_MORE : 0));
		if (n < 0 && errno == EAGAIN) {
			watch(r, watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, EPOLLOUT);
			return;
		}
		if (n < 0)
			break;		/* the client has gone */
		r->sent += n;
	}
	end_request(r);
}

static void begin_answer(struct request *r)
{
	r->head = snprintf(r->text, sizeof(r->text),
			   "HTTP/1.0 200 OK\r\n"
			   "Server: l4lb-bench\r\n"
			   "Real-Server: %lu\r\nCache: %s\r\n"
			   "Last-Modified: Mon, 02 Apr 2001 08:00:00 GMT\r\n"
			   "Content-Type: text/html\r\nConnection: close\r\n"
			   "Content-Length: %u\r\n\r\n",
			   cost.number, r->hit ? "hit" : "miss", r->doc->size);
	r->sent = 0;
	answer(r, false);
}

/* The processor is done with the request: answer it, or queue it for the disk. */
static void leave_cpu(struct request *r)
{
	uint64_t now = r->due;
	struct document *d = r->doc;

	r->hit = d->cached && d->there <= now;
	if (r->hit) {
		use_document(d);
		begin_answer(r);
		return;
	}
	if (!d->cached) {
		enqueue(&disk, r, now, cost.disk_seek +
			d->size * NSEC_PER_SEC / cost.disk_rate);
		d->there = r->due;
	} else {
		/* The disk already reads it for another request. */
		insert(&disk, r, d->there);
	}
	use_document(d);
}

/* Reads from the client; a complete request is queued for the processor. */
static void read_request(struct request *r, uint64_t now, bool watched)
{
	ssize_t n = read(r->fd, r->text + r->length, sizeof(r->text) - 1 - r->length);
	unsigned long id;

	if (n < 0 && errno == EAGAIN)
		n = 0;
	else if (n <= 0)
		goto refuse;
	r->length += n;
	r->text[r->length] = 0;
	if (!strstr(r->text, "\r\n\r\n")) {
		if (r->length == sizeof(r->text) - 1)
			goto refuse;
		if (!watched)
			watch(r, EPOLL_CTL_ADD, EPOLLIN);
		return;
	}
	if (sscanf(r->text, "GET /%lu ", &id) != 1 || id >= ndocs)
		goto refuse;
	if (watched)
		watch(r, EPOLL_CTL_DEL, 0);
	r->doc = &docs[id];
	enqueue(&cpu, r, now, cost.cpu_request + cost.cpu_byte * r->doc->size);
	return;
refuse:
	end_request(r);
}

static void accept_all(uint64_t now)
{
	while (under_way < cost.workers) {
		struct request *r;
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno == EAGAIN)
				return;
			if (errno == ECONNABORTED)
				continue;
			err(1, "accept");
		}
		r = calloc(1, sizeof(*r));
		if (!r)
			err(1, "calloc");
		r->fd = fd;
		under_way++;
		read_request(r, now, false);
	}
	watch(NULL, EPOLL_CTL_MOD, 0);
}

/* Handles all requests that the processor or the disk has finished by now. */
static void finish_work(uint64_t now)
{
	for (;;) {
		bool c = cpu.first && cpu.first->due <= now;
		bool d = disk.first && disk.first->due <= now;

		if (d && (!c || disk.first->due <= cpu.first->due))
			begin_answer(dequeue(&disk));
		else if (c)
			leave_cpu(dequeue(&cpu));
		else
			return;
	}
}

static struct timespec *until_due(uint64_t now, struct timespec *ts)
{
	uint64_t due = UINT64_MAX;

	if (cpu.first)
		due = cpu.first->due;
	if (disk.first && disk.first->due < due)
		due = disk.first->due;
	if (due == UINT64_MAX)
		return NULL;
	*ts = timespec_of(due > now ? due - now : 0);
	return ts;
}

static void serve(void)
{
	struct epoll_event events[256];
	struct timespec ts;
	int n, i;

	for (;;) {
		uint64_t now = now_ns();

		finish_work(now);
		n = epoll_pwait2(epoll, events, 256, until_due(now, &ts), NULL);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_pwait2");
		now = now_ns();
		finish_work(now);
		for (i = 0; i < n; i++) {
			struct request *r = events[i].data.ptr;

			if (!r)
				accept_all(now);
			else if (r->head)
				answer(r, true);
			else
				read_request(r, now, true);
		}
	}
}

static void listen_on(const char *address, const char *port, int backlog)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(parse_number(port, 65535)) };
	int on = 1;

	if (inet_pton(AF_INET, address, &sin.sin_addr) != 1)
		errx(2, "'%s' is not an IPv4 address", address);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (listener < 0 ||
	    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    bind(listener, (struct sockaddr *)&sin, sizeof(sin)) ||
	    listen(listener, backlog))
		err(1, "%s:%s", address, port);
	epoll = epoll_create1(0);
	if (epoll < 0)
		err(1, "epoll_create1");
	watch(NULL, EPOLL_CTL_ADD, EPOLLIN);
}

int main(int argc, char **argv)
{
	const unsigned long most = 1UL << 40;
	uint32_t *sizes;
	size_t i;

	if (argc != 12 && argc != 15)
		errx(2, "11 or 14 arguments are needed, see the top of httpd.c");
	cost.number = parse_number(argv[3], 255);
	sizes = read_entries(argv[4], sizeof(*sizes), &ndocs);
	cost.cpu_request = parse_number(argv[5], most);
	cost.cpu_byte = parse_number(argv[6], most);
	cost.disk_seek = parse_number(argv[7], most);
	cost.disk_rate = parse_number(argv[8], most);
	cost.cache = parse_number(argv[9], most);
	cost.workers = parse_number(argv[10], 100000);
	if (!cost.disk_rate || !cost.workers)
		errx(2, "the disk's rate and the number of workers must not be 0");
	docs = calloc(ndocs, sizeof(*docs));
	if (!docs)
		err(1, "calloc");
	for (i = 0; i < ndocs; i++)
		docs[i].size = sizes[i];
	free(sizes);
	fill_cache();
	memset(body, 'x', sizeof(body));
	signal(SIGPIPE, SIG_IGN);
	listen_on(argv[1], argv[2], parse_number(argv[11], 65535));
	if (argc == 15) {
		slow.from = now_ns() + parse_number(argv[12], most);
		slow.to = now_ns() + parse_number(argv[13], most);
		slow.factor = parse_number(argv[14], 1000);
	}
	puts("ready");
	fflush(stdout);
	serve();
}

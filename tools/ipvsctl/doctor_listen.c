// SPDX-License-Identifier: GPL-2.0
/* One TCP connection to each real server, which a reset ends at once. It is first aid
 * and no health check: keepalived has those.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ip_vs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "doctor_listen.h"
#include "exam.h"
#include "report.h"

enum {
	KNOCKS_MAX	= 4096,
	AT_ONCE		= 256,		/* each has an open file */
	WAIT_MS		= 1000,		/* for the answers of those */
};

struct knock {
	const struct service *svc;
	const struct server *srv;
	int fd;
	int err;		/* of the connection; EINPROGRESS until then */
};

static bool is_nat(const struct server *srv)
{
	return (srv->forward & IP_VS_CONN_F_FWD_MASK) == IP_VS_CONN_F_MASQ;
}

static int cmp_place(const struct server *x, const struct server *y)
{
	if (x->af != y->af)
		return x->af < y->af ? -1 : 1;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return memcmp(&x->addr, &y->addr, sizeof(x->addr));
}

/* Among equals, NAT comes first: there it is an error if nobody listens. */
static int cmp_knock(const void *a, const void *b)
{
	const struct server *x = ((const struct knock *)a)->srv;
	const struct server *y = ((const struct knock *)b)->srv;

	return cmp_place(x, y) ?: is_nat(y) - is_nat(x);
}

/* A service of all ports has servers without one. */
static bool is_probed(const struct exam *e, const struct service *svc,
		      const struct server *srv)
{
	return svc->id.proto == IPPROTO_TCP && !svc->id.fwmark && srv->port &&
	       srv->weight && exam_route(e, srv)->kind != ROUTE_NONE;
}

/* Those of several services once. Sets @n; the caller frees what is returned. */
static struct knock *collect(const struct exam *e, size_t *n)
{
	struct knock *v;
	size_t i, j, all = 0;

	*n = 0;
	for (i = 0; i < e->list.n; i++)
		all += e->list.v[i].nservers;
	v = calloc(all + 1, sizeof(*v));
	if (!v)
		return NULL;
	all = 0;
	for (i = 0; i < e->list.n; i++) {
		const struct service *svc = &e->list.v[i];

		for (j = 0; j < svc->nservers; j++)
			if (is_probed(e, svc, &svc->servers[j]))
				v[all++] = (struct knock){ svc, &svc->servers[j],
							   -1, 0 };
	}
	qsort(v, all, sizeof(*v), cmp_knock);
	for (i = 0; i < all; i++)
		if (!*n || cmp_place(v[*n - 1].srv, v[i].srv))
			v[(*n)++] = v[i];
	return v;
}

static socklen_t address(const struct server *srv, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = srv->af;
	if (srv->af == AF_INET) {
		in->sin_port = htons(srv->port);
		memcpy(&in->sin_addr, srv->addr.b, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	in6->sin6_port = htons(srv->port);
	memcpy(&in6->sin6_addr, srv->addr.b, sizeof(in6->sin6_addr));
	return sizeof(*in6);
}

static void begin(struct knock *k)
{
	const struct linger reset = { .l_onoff = 1 };
	struct sockaddr_storage to;
	socklen_t len = address(k->srv, &to);

	k->fd = socket(k->srv->af, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (k->fd < 0 ||
	    setsockopt(k->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) ||
	    connect(k->fd, (struct sockaddr *)&to, len))
		k->err = errno;
}

static void take(struct knock *k)
{
	socklen_t len = sizeof(k->err);

	if (getsockopt(k->fd, SOL_SOCKET, SO_ERROR, &k->err, &len))
		k->err = errno;
}

/* At most AT_ONCE of them. */
static void wait_for(struct knock *v, size_t n)
{
	int64_t end = clock_ms(CLOCK_MONOTONIC) + WAIT_MS, left;
	struct pollfd fds[AT_ONCE];
	struct knock *of[AT_ONCE];
	nfds_t i, open = 0;

	for (i = 0; i < n; i++) {
		if (v[i].err != EINPROGRESS)
			continue;
		fds[open].fd = v[i].fd;
		fds[open].events = POLLOUT;
		of[open++] = &v[i];
	}
	while (open && (left = end - clock_ms(CLOCK_MONOTONIC)) > 0) {
		if (poll(fds, open, (int)left) <= 0)
			return;
		for (i = 0; i < open; i++) {
			if (!fds[i].revents)
				continue;
			take(of[i]);
			fds[i] = fds[--open];
			of[i--] = of[open];
		}
	}
}

static const char *what_happened(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return "connections are refused";
	case EINPROGRESS:
	case ETIMEDOUT:
		return "a TCP connection is not answered within a second";
	default:
		return strerror(err);
	}
}

/* Is it the server's, or of the way there? */
static bool is_answer(int err)
{
	return err == ECONNREFUSED || err == EINPROGRESS || err == ETIMEDOUT ||
	       err == EHOSTUNREACH || err == ENETUNREACH || err == ECONNRESET;
}

static void tell(struct report *r, const struct knock *k)
{
	const char *name = exam_server_text(k->svc, k->srv);

	if (!k->err)
		return;
	if (!is_answer(k->err)) {
		report_unknown(r, "%s: %s", name, strerror(k->err));
		return;
	}
	if (!is_nat(k->srv)) {
		report_add(r, SEVERITY_NOTE, name,
			   "at its own address %s; the program may listen on the VIP only",
			   what_happened(k->err));
		return;
	}
	report_add(r, k->err == ECONNREFUSED ? SEVERITY_ERROR : SEVERITY_WARNING,
		   name, "%s", what_happened(k->err));
	report_cure(r, "on the server: ss -ltn must show %s; a firewall may forbid it",
		    ip_port_text(k->srv->af, &k->srv->addr, k->srv->port));
}

static void knock_at(struct report *r, struct knock *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		begin(&v[i]);
	wait_for(v, n);
	for (i = 0; i < n; i++) {
		tell(r, &v[i]);
		if (v[i].fd >= 0)
			close(v[i].fd);
	}
}

void check_listen(const struct exam *e, struct report *r)
{
	struct knock *v;
	size_t n, done, some;

	v = collect(e, &n);
	if (!v) {
		report_unknown(r, "out of memory");
		return;
	}
	for (done = 0; done < n && done < KNOCKS_MAX; done += some) {
		some = n - done < AT_ONCE ? n - done : AT_ONCE;
		knock_at(r, v + done, some);
	}
	if (done < n)
		report_unknown(r, "%zu of %zu servers: name a service", n - done, n);
	free(v);
}

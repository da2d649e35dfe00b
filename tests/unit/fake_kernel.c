// SPDX-License-Identifier: GPL-2.0
/* A kernel for ipvsctl's watching commands, without one: tests/host/fake.py links the
 * program with it (ld --wrap). Its counters grow with its clock, each at a rate that its
 * service's and server's number give, so that a test knows what has to be shown. The
 * clock stands but while the program waits, and then goes by just what it waits for: so
 * the same is shown however slow the machine is.
 *
 * FAKE_SERVICES, FAKE_SERVERS: how many, and of each; default 6 and 3
 * FAKE_PROC: a directory with net/ip_vs_stats, net/l4lb and so on; a line of net/l4lb may
 *	have a third word, by how much the counter grows in a second
 * FAKE_RATE: connections a second of the first server, default 100; 0: nothing moves
 * FAKE_DELAY: milliseconds that reading the services takes
 * FAKE_COMES: the number of a service that is there only every other time
 * FAKE_LATENCY: TCP services measure their real servers; number J (from 0) answers ten times
 *	a second, in the first hour after 1.5 * 2^J milliseconds, but for each tenth time,
 *	and then after twice as long
 * FAKE_OLD: in-tree ip_vs
 * FAKE_NONE: no module is loaded, and asking for the netlink family is a mistake
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/ip_vs.h>

#include "../../tools/ipvsctl/kern_conn.h"
#include "../../tools/ipvsctl/kern_l4lb.h"
#include "../../tools/ipvsctl/kern_latency.h"
#include "../../tools/ipvsctl/kern_peer.h"
#include "../../tools/ipvsctl/kern_sync.h"
#include "../../tools/ipvsctl/latency.h"
#include "../../tools/ipvsctl/model.h"
#include "../../tools/ipvsctl/proc.h"
#include "../../tools/ipvsctl/scheduler_list.h"

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

enum { SECOND = 1000000000 };

static uint64_t clock_ns = 3600 * (uint64_t)SECOND;

/* Milliseconds for which the counters have grown: an hour, and the waits since then. */
static uint64_t age(void)
{
	return clock_ns / (SECOND / 1000);
}

static void grow(struct counters *c, uint64_t cps, uint64_t ms)
{
	c->conns += cps * ms / 1000;
	c->inpkts += 7 * cps * ms / 1000;
	c->outpkts += 9 * cps * ms / 1000;
	c->inbytes += 700 * cps * ms / 1000;
	c->outbytes += 9000 * cps * ms / 1000;
	/* What the kernel says is another number, to tell them apart. */
	c->cps += 2 * cps;
	c->inpps += 2 * 7 * cps;
	c->outpps += 2 * 9 * cps;
	c->inbps += 2 * 700 * cps;
	c->outbps += 2 * 9000 * cps;
}

static void name_service(struct service *svc, unsigned long i)
{
	static const uint16_t protos[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP };

	svc->id.af = i % 6 == 5 ? AF_INET6 : AF_INET;
	strcpy(svc->scheduler, i % 2 ? "wlc" : "rr");
	if (i % 6 == 4) {
		svc->id.fwmark = (uint32_t)i;
		return;
	}
	svc->id.proto = protos[i % 3];
	svc->id.port = (uint16_t)(80 + i % 60000);
	if (svc->id.af == AF_INET6)
		memcpy(svc->id.addr.b, "\x20\x01\x0d\xb8", 4);
	else
		memcpy(svc->id.addr.b, "\xc0\x00\x02", 3);
	svc->id.addr.b[svc->id.af == AF_INET6 ? 15 : 3] = 10;
}

static void add_server(struct service *svc, unsigned long i, unsigned long j,
		       uint64_t ms)
{
	struct server *srv = server_append(svc);
	uint64_t cps = number("FAKE_RATE", 100) * (i + 1) / (j + 1);

	srv->af = svc->id.af;
	if (srv->af == AF_INET6)
		memcpy(srv->addr.b, "\x20\x01\x0d\xb8\0\1", 6);
	else
		memcpy(srv->addr.b, "\x0a\x00\x00", 3);
	srv->addr.b[srv->af == AF_INET6 ? 15 : 3] = (uint8_t)(11 + j);
	srv->port = svc->id.port;
	srv->weight = i % 4 == 3 && !j ? 0 : 1;
	srv->active = (uint32_t)(10 * (i + 1) + j);
	srv->inactive = (uint32_t)i;
	srv->max_conns = i % 4 == 2 && !j ? 20 : 0;
	grow(&srv->stats, cps, ms);
	grow(&svc->stats, cps, ms);
}

int __wrap_wire_open(void);
bool __wrap_wire_has_own(void);
bool __wrap_backend_is_l4lb(void);
const char *__wrap_backend_name(void);
bool __wrap_module_loaded(const char *name);
int __wrap_kern_services(struct service_list *list, bool servers);
int __wrap_kern_service(const struct svc_id *id, struct service *svc, bool servers);
int __wrap_kern_conns(const struct conn_filter *f,
		      bool (*fn)(const struct conn *c, void *arg), void *arg);
int __wrap_kern_drains(struct service_list *list);
int __wrap_kern_latency(struct service_list *list, const struct svc_id *only);
int __wrap_kern_schedulers(struct sched_infos *infos);
void __wrap_scheduler_list_read(struct sched_list *list);
int __wrap_kern_sync_list(struct sync_daemon list[SYNC_DAEMONS_MAX]);
int __wrap_kern_peers(struct sync_peer list[L4LB_PEERS_MAX]);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
time_t __wrap_time(time_t *out);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *left,
		 const sigset_t *mask);
int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *left,
		 const sigset_t *mask);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	/* It begins at noon on 1 January 2026, UTC. */
	ts->tv_sec = (time_t)(clock_ns / SECOND) + (id == CLOCK_REALTIME ? 1767265200 : 0);
	ts->tv_nsec = (long)(clock_ns % SECOND);
	return 0;
}

time_t __wrap_time(time_t *out)
{
	struct timespec ts;

	__wrap_clock_gettime(CLOCK_REALTIME, &ts);
	if (out)
		*out = ts.tv_sec;
	return ts.tv_sec;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *left,
		 const sigset_t *mask)
{
	int ready = __real_ppoll(fds, n, left, mask);

	/* It is over a little later than asked for, as it always is. */
	if (!ready && left)
		clock_ns += (uint64_t)left->tv_sec * SECOND + (uint64_t)left->tv_nsec + 1;
	return ready;
}

int __wrap_wire_open(void)
{
	if (getenv("FAKE_NONE"))
		abort();
	return 0;
}

bool __wrap_backend_is_l4lb(void)
{
	return !getenv("FAKE_OLD");
}

const char *__wrap_backend_name(void)
{
	return __wrap_backend_is_l4lb() ? "l4lb" : "ip_vs";
}

bool __wrap_wire_has_own(void)
{
	return __wrap_backend_is_l4lb();
}

bool __wrap_module_loaded(const char *name)
{
	return !getenv("FAKE_NONE") &&
	       !strcmp(name, __wrap_backend_is_l4lb() ? "l4lb" : "ip_vs");
}

static void measure(struct server *srv, unsigned int j, uint64_t n)
{
	const uint64_t hour = 36000, late = n > hour ? n - hour : 0, soon = n - late;
	struct latency *l;

	srv->latency = calloc(1, sizeof(*srv->latency));
	l = &srv->latency->answer;
	l->bucket[11 + j] = soon - soon / 10;
	l->bucket[12 + j] = late;
	l->sum = (soon - soon / 10) * (1500ull << j) + late * (3000ull << j);
	l->unanswered = soon / 10;
	l = &srv->latency->handshake;
	l->bucket[8] = n;
	l->sum = 200 * n;
	l->refused = 1;
}

int __wrap_kern_latency(struct service_list *list, const struct svc_id *only)
{
	size_t i, j;

	(void)only;
	for (i = 0; i < list->n; i++)
		for (j = 0; service_measures(&list->v[i]) && j < list->v[i].nservers; j++)
			measure(&list->v[i].servers[j], (unsigned int)j, age() / 100);
	return 0;
}

int __wrap_kern_services(struct service_list *list, bool servers)
{
	static unsigned int reads;
	uint64_t ms;
	unsigned long i, j, n = number("FAKE_SERVICES", 6), m = number("FAKE_SERVERS", 3);
	const struct timespec delay = { 0, (long)number("FAKE_DELAY", 0) * 1000000 };

	nanosleep(&delay, NULL);
	clock_ns += (uint64_t)delay.tv_nsec;
	ms = age();
	reads++;
	for (i = 0; i < n; i++) {
		struct service *svc;

		if (i == number("FAKE_COMES", n) && reads % 2)
			continue;
		svc = service_append(list);

		name_service(svc, i);
		/* The last one has no server. */
		for (j = 0; j < m && (i + 1 < n || n == 1); j++)
			add_server(svc, i, j, ms);
		if (!servers)
			service_free(svc);
		if (getenv("FAKE_LATENCY") && svc->id.proto == IPPROTO_TCP)
			svc->policy.value[L4LB_POLICY_ATTR_LATENCY] = 1;
		if (i || !servers || getenv("FAKE_OLD"))
			continue;
		svc->policy.value[L4LB_POLICY_ATTR_PRIORITY] = L4LB_PRIORITY_LAS;
		svc->has_bands = true;
		for (j = 0; j < L4LB_BANDS; j++)
			svc->bands[j] = (struct band){ 10 * (j + 1), 1000 * (j + 1) };
	}
	service_list_sort(list);
	return 0;
}

int __wrap_kern_sync_list(struct sync_daemon list[SYNC_DAEMONS_MAX])
{
	(void)list;
	return 0;
}

int __wrap_kern_service(const struct svc_id *id, struct service *svc, bool servers)
{
	struct service_list list = { 0 };
	struct service *found;
	int err = -ESRCH;

	__wrap_kern_services(&list, servers);
	found = service_find(&list, id);
	if (found) {
		err = 0;
		*svc = *found;
		found->servers = NULL;
		found->nservers = 0;
	}
	service_list_free(&list);
	return err;
}

/* A thousand to each service. */
int __wrap_kern_conns(const struct conn_filter *f,
		      bool (*fn)(const struct conn *c, void *arg), void *arg)
{
	unsigned int i;

	if (getenv("FAKE_OLD"))
		return -EOPNOTSUPP;
	for (i = 0; i < 1000; i++) {
		struct conn c = { .af = AF_INET, .server_af = AF_INET };

		c.proto = IPPROTO_TCP;
		memcpy(c.client.b, "\xc6\x33\x64\x07", 4);
		memcpy(c.server.b, "\x0a\x00\x00\x0b", 4);
		c.vip = f->service.addr;
		c.vport = f->service.port;
		c.client_port = (uint16_t)(40000 + i);
		c.server_port = 80;
		c.expires = 900 - i % 900;
		strcpy(c.state, "ESTABLISHED");
		if (!fn(&c, arg))
			break;
	}
	return 0;
}

int __wrap_kern_schedulers(struct sched_infos *infos)
{
	infos->v = calloc(1, sizeof(*infos->v));
	if (!infos->v)
		return -ENOMEM;
	infos->n = 1;
	infos->v->n = 2;
	strcpy(infos->v->name, "wlc");
	strcpy(infos->v->options[0].name, "shrink");
	strcpy(infos->v->options[1].name, "expire");
	return 0;
}

void __wrap_scheduler_list_read(struct sched_list *list)
{
	/* The last one is what nobody should have at the end of a command line. */
	static const char *const names[] = { "rr", "wlc", "wrr", "wrong$(reboot)" };

	for (list->n = 0; list->n < 4; list->n++)
		strcpy(list->name[list->n], names[list->n]);
}

/* No server drains. */
int __wrap_kern_drains(struct service_list *list)
{
	(void)list;
	return 0;
}

int __wrap_kern_peers(struct sync_peer list[L4LB_PEERS_MAX])
{
	if (getenv("FAKE_OLD"))
		return -EOPNOTSUPP;
	list[0] = (struct sync_peer){ .af = AF_INET, .state = L4LB_PEER_IN_STEP,
				      .lost = 3 };
	memcpy(list[0].addr.b, "\x0a\x00\x00\x02", 4);
	return 1;
}

/* The counters of @from as they are now, in a file without a name. */
static FILE *grown(FILE *from)
{
	char name[64], line[128];
	unsigned long value, rate;
	FILE *f = from ? tmpfile() : NULL;

	while (f && fgets(line, sizeof(line), from)) {
		rate = 0;
		if (sscanf(line, "%63s %lu %lu", name, &value, &rate) >= 2)
			fprintf(f, "%s %lu\n", name, value + rate * age() / 1000);
	}
	if (f)
		rewind(f);
	if (from)
		fclose(from);
	return f;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	const char *dir = getenv("FAKE_PROC");
	char other[512];
	FILE *f;

	if (strncmp(path, "/proc/", 6))
		return __real_fopen(path, mode);
	snprintf(other, sizeof(other), "%s/%s", dir ? dir : "/nowhere", path + 6);
	f = __real_fopen(other, mode);
	return strcmp(path, "/proc/net/l4lb") ? f : grown(f);
}

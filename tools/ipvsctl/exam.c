// SPDX-License-Identifier: GPL-2.0
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "err.h"
#include "exam.h"
#include "kern.h"
#include "lookup.h"
#include "opt.h"
#include "refuse.h"
#include "wire.h"

enum { VRRP = 112 };

static int cmp_place(const void *a, const void *b)
{
	const struct exam_place *x = a, *y = b;

	if (x->af != y->af)
		return x->af < y->af ? -1 : 1;
	return memcmp(x->addr.b, y->addr.b, sizeof(x->addr.b));
}

/* Sorts, keeps one of each address, and asks for the way there. */
static void settle(struct places *p, const struct net *net)
{
	size_t i, n = 0;

	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), cmp_place);
	for (i = 0; i < p->n; i++)
		if (!n || cmp_place(&p->v[n - 1], &p->v[i]))
			p->v[n++] = p->v[i];
	p->n = n;
	for (i = 0; i < n; i++)
		net_route(net, p->v[i].af, &p->v[i].addr, &p->v[i].route);
}

static int find_places(struct exam *e)
{
	size_t i, j, servers = 0;

	for (i = 0; i < e->list.n; i++)
		servers += e->list.v[i].nservers;
	e->vips.v = calloc(e->list.n + 1, sizeof(*e->vips.v));
	e->servers.v = calloc(servers + 1, sizeof(*e->servers.v));
	if (!e->vips.v || !e->servers.v)
		return fail(RC_REFUSED, NULL, "out of memory");
	for (i = 0; i < e->list.n; i++) {
		const struct service *svc = &e->list.v[i];

		if (!svc->id.fwmark)
			e->vips.v[e->vips.n++] = (struct exam_place){
				.af = svc->id.af, .addr = svc->id.addr, .svc = svc };
		for (j = 0; j < svc->nservers; j++)
			e->servers.v[e->servers.n++] = (struct exam_place){
				.af = svc->servers[j].af,
				.addr = svc->servers[j].addr,
				.svc = svc, .srv = &svc->servers[j] };
	}
	settle(&e->vips, &e->net);
	settle(&e->servers, &e->net);
	return RC_OK;
}

static void keep_family(struct service_list *list)
{
	size_t i, n = 0;

	for (i = 0; i < list->n; i++) {
		if (!opt.family || list->v[i].id.af == opt.family)
			list->v[n++] = list->v[i];
		else
			service_free(&list->v[i]);
	}
	list->n = n;
}

static int read_services(struct exam *e, const struct svc_id *only)
{
	struct service *svc;
	int err, rc;

	if (only) {
		svc = service_append(&e->list);
		rc = service_lookup(only, svc, true);
		if (rc)
			e->list.n = 0;
		return rc;
	}
	err = kern_services(&e->list, true);
	if (err)
		return refuse(err, NULL, "doctor");
	keep_family(&e->list);
	return RC_OK;
}

int exam_read(struct exam *e, const struct svc_id *only)
{
	int rc;

	memset(e, 0, sizeof(*e));
	/* What is not there cannot be opened; why, a check says. */
	e->module = backend_is_l4lb() || module_loaded("ip_vs");
	rc = e->module ? wire_open() : RC_OK;
	if (!rc && e->module)
		rc = read_services(e, only);
	if (!rc && net_read(&e->net))
		rc = fail(RC_REFUSED, NULL,
			  "cannot read devices, addresses and neighbours by netlink");
	if (!rc)
		rc = find_places(e);
	if (!rc && e->module)
		e->ndaemons = kern_sync_list(e->daemons);
	if (e->ndaemons < 0)
		e->ndaemons = 0;
	return rc;
}

void exam_free(struct exam *e)
{
	service_list_free(&e->list);
	net_free(&e->net);
	free(e->vips.v);
	free(e->servers.v);
}

const struct net_route *exam_route(const struct exam *e,
				   const struct server *srv)
{
	struct exam_place key = { .af = srv->af, .addr = srv->addr }, *found;

	found = bsearch(&key, e->servers.v, e->servers.n, sizeof(key), cmp_place);
	return &found->route;
}

/* VRRP programs have a raw socket of this protocol: "   1: 00000000:0070 ..." */
static bool vrrp_runs(const char *path)
{
	unsigned int protocol;
	bool found = false;
	char line[256];
	FILE *f = fopen(path, "re");

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, " %*u: %*[0-9A-F]:%x", &protocol) == 1 &&
			protocol == VRRP;
	if (f)
		fclose(f);
	return found;
}

bool exam_is_paired(const struct exam *e)
{
	return e->ndaemons || vrrp_runs("/proc/net/raw") ||
	       vrrp_runs("/proc/net/raw6");
}

const char *exam_server_text(const struct service *svc,
			     const struct server *srv)
{
	static char text[160];

	snprintf(text, sizeof(text), "%s: server %s", svc_text(&svc->id),
		 ip_port_text(srv->af, &srv->addr, srv->port));
	return text;
}

bool exam_number(const char *path, uint64_t *value)
{
	unsigned long long found;
	FILE *f = fopen(path, "re");
	bool ok = f && fscanf(f, "%llu", &found) == 1;

	if (f)
		fclose(f);
	if (ok)
		*value = found;
	return ok;
}

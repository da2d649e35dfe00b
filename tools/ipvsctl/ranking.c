// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "ranking.h"
#include "snapshot.h"

static const char *const words[] = {
	[RANK_CONNS] = "conns", [RANK_PACKETS] = "packets",
	[RANK_BYTES] = "bytes", [RANK_ACTIVE] = "active", [RANK_NAME] = "name",
};

const char *rank_word(enum rank_key key)
{
	return (size_t)key < sizeof(words) / sizeof(words[0]) ? words[key] : NULL;
}

static double value(const struct ranked *row, enum rank_key key)
{
	switch (key) {
	case RANK_PACKETS:
		return row->rate.inpkts + row->rate.outpkts;
	case RANK_BYTES:
		return row->rate.inbytes + row->rate.outbytes;
	case RANK_ACTIVE:
		return (double)row->active;
	case RANK_CONNS:
	case RANK_NAME:
		break;
	}
	return row->rate.conns;
}

/* Equal ones stay in the order of their names, in which they were read: a row
 * that jumps about cannot be read.
 */
static int compare(const void *a, const void *b, void *arg)
{
	const struct ranked *x = a, *y = b;
	const struct rank_by *by = arg;
	int sign = by->reverse ? -1 : 1;

	if (by->key != RANK_NAME) {
		double p = value(x, by->key), q = value(y, by->key);

		if (p != q)
			return p < q ? sign : -sign;
		sign = 1;
	}
	if (x->svc != y->svc)
		return x->svc < y->svc ? -sign : sign;
	return x->srv < y->srv ? -sign : x->srv > y->srv ? sign : 0;
}

static bool has(const char *text, const char *pattern)
{
	return strcasestr(text, pattern);
}

static bool server_fits(const struct server *srv, const char *pattern)
{
	return has(ip_port_text(srv->af, &srv->addr, srv->port), pattern);
}

static bool service_fits(const struct service *svc, const char *pattern)
{
	return has(svc_text(&svc->id), pattern) || has(svc->scheduler, pattern);
}

static struct ranked *append(struct ranking *out, const struct service *svc,
			     const struct server *srv, const struct rate *rate)
{
	struct ranked *row = &out->rows[out->n++];

	*row = (struct ranked){ .svc = svc, .srv = srv, .rate = *rate };
	return row;
}

/* Rows of the service's servers that fit, or of all if the service does. */
static size_t append_servers(const struct service *svc, const struct rate *rates,
			     const char *pattern, struct ranking *out)
{
	bool all = !pattern[0] || service_fits(svc, pattern);
	size_t i, n = 0;

	for (i = 0; i < svc->nservers; i++) {
		const struct server *srv = &svc->servers[i];
		struct ranked *row;

		if (!all && !server_fits(srv, pattern))
			continue;
		row = append(out, svc, srv, &rates[i]);
		row->active = srv->active;
		row->inactive = srv->inactive;
		n++;
	}
	return n;
}

static bool passes(const struct service *svc, const char *pattern)
{
	size_t i;

	if (!pattern[0] || service_fits(svc, pattern))
		return true;
	for (i = 0; i < svc->nservers; i++)
		if (server_fits(&svc->servers[i], pattern))
			return true;
	return false;
}

static void append_services(const struct snapshot *s, const struct rates *r,
			    const char *pattern, struct ranking *out)
{
	size_t i, j;

	for (i = 0; i < s->list.n; i++) {
		const struct service *svc = &s->list.v[i];
		struct ranked *row;

		if (!passes(svc, pattern))
			continue;
		row = append(out, svc, NULL, &r->services[i]);
		for (j = 0; j < svc->nservers; j++) {
			row->active += svc->servers[j].active;
			row->inactive += svc->servers[j].inactive;
		}
	}
	out->services = out->n;
}

/* Of all services, not only of those that are shown. */
static double sum_of_all(const struct snapshot *s, const struct rates *r,
			 enum rank_key key)
{
	double sum = 0;
	size_t i, j;

	for (i = 0; i < s->list.n; i++) {
		struct ranked row = { .rate = r->services[i] };

		for (j = 0; j < s->list.v[i].nservers; j++)
			row.active += s->list.v[i].servers[j].active;
		sum += value(&row, key);
	}
	return sum;
}

static void shares(struct ranked *rows, size_t n, enum rank_key key, double sum)
{
	size_t i;

	for (i = 0; i < n && sum > 0; i++)
		rows[i].share = value(&rows[i], key) / sum;
}

static void *rows_for(size_t n)
{
	void *rows = calloc(n + 1, sizeof(struct ranked));

	if (!rows)
		err(3, "out of memory");
	return rows;
}

/* Puts each service's servers below it. */
static void insert_servers(const struct snapshot *s, const struct rates *r,
			   const struct rank_by *by, struct ranking *out)
{
	struct ranked *services = out->rows;
	size_t i, count = out->services;

	for (i = 0; i < out->services; i++)
		count += services[i].svc->nservers;
	out->rows = rows_for(count);
	out->n = 0;
	for (i = 0; i < out->services; i++) {
		const struct service *svc = services[i].svc;
		size_t place = (size_t)(svc - s->list.v);
		struct ranked *first;
		size_t n;

		out->rows[out->n++] = services[i];
		first = &out->rows[out->n];
		n = append_servers(svc, &r->servers[r->first[place]],
				   by->pattern, out);
		shares(first, n, by->key, value(&services[i], by->key));
		qsort_r(first, n, sizeof(*first), compare, (void *)by);
	}
	free(services);
}

void rank(const struct snapshot *s, const struct rates *r,
	  const struct rank_by *by, struct ranking *out)
{
	memset(out, 0, sizeof(*out));
	out->rows = rows_for(s->list.n);
	append_services(s, r, by->pattern, out);
	shares(out->rows, out->n, by->key, sum_of_all(s, r, by->key));
	qsort_r(out->rows, out->n, sizeof(*out->rows), compare, (void *)by);
	if (by->servers)
		insert_servers(s, r, by, out);
}

void rank_free(struct ranking *ranking)
{
	free(ranking->rows);
	memset(ranking, 0, sizeof(*ranking));
}

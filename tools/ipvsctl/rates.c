// SPDX-License-Identifier: GPL-2.0
/* Both lists are sorted, so they are walked side by side: the work grows with
 * their length, not with its square.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "latency.h"
#include "model.h"
#include "must.h"
#include "rates.h"
#include "snapshot.h"

static bool has_grown(const struct counters *a, const struct counters *b)
{
	return b->conns >= a->conns && b->inpkts >= a->inpkts &&
	       b->outpkts >= a->outpkts && b->inbytes >= a->inbytes &&
	       b->outbytes >= a->outbytes;
}

static struct rate rate_of(const struct counters *a, const struct counters *b,
			   double secs)
{
	if (!a || !has_grown(a, b))
		return (struct rate){ (double)b->cps, (double)b->inpps,
				      (double)b->outpps, (double)b->inbps,
				      (double)b->outbps, 0 };
	return (struct rate){
		(double)(b->conns - a->conns) / secs,
		(double)(b->inpkts - a->inpkts) / secs,
		(double)(b->outpkts - a->outpkts) / secs,
		(double)(b->inbytes - a->inbytes) / secs,
		(double)(b->outbytes - a->outbytes) / secs,
		0,
	};
}

/* What has come since @was, which is added to @all. Without @was, all that came. */
static double p99_since(const struct server *was, const struct server *srv,
			struct latency *all)
{
	struct latency l;
	double p99;

	if (!srv->latency)
		return 0;
	l = srv->latency->answer;
	if (was && was->latency)
		latency_subtract(&l, &was->latency->answer);
	latency_add(all, &l);
	p99 = latency_quantile(&l, 0.99);
	return p99 > 0 ? p99 : 0;
}

/* @old: NULL if the service is new. Returns the 99 % of all their answers. */
static double server_rates(const struct service *old, const struct service *svc,
			   double secs, struct rate *out)
{
	size_t i, at = 0, n = old ? old->nservers : 0;
	struct latency all = { 0 };
	double p99;

	for (i = 0; i < svc->nservers; i++) {
		const struct server *srv = &svc->servers[i];
		const struct server *was = NULL;

		while (at < n && server_cmp(&old->servers[at], srv) < 0)
			at++;
		if (at < n && !server_cmp(&old->servers[at], srv))
			was = &old->servers[at];
		out[i] = rate_of(was ? &was->stats : NULL, &srv->stats, secs);
		out[i].p99 = p99_since(was, srv, &all);
	}
	p99 = latency_quantile(&all, 0.99);
	return p99 > 0 ? p99 : 0;
}

static void service_rates(const struct snapshot *before,
			  const struct snapshot *now, double secs,
			  struct rates *r)
{
	size_t i, at = 0, n = before ? before->list.n : 0;

	for (i = 0; i < now->list.n; i++) {
		const struct service *svc = &now->list.v[i], *old = NULL;

		while (at < n &&
		       svc_id_cmp(&before->list.v[at].id, &svc->id) < 0)
			at++;
		if (at < n && svc_id_equal(&before->list.v[at].id, &svc->id))
			old = &before->list.v[at];
		r->services[i] = rate_of(old ? &old->stats : NULL, &svc->stats,
					 secs);
		r->services[i].p99 = server_rates(old, svc, secs,
						  &r->servers[r->first[i]]);
	}
}

/* The kernel lists its counters always in the same order; only at the end more
 * may come.
 */
static void counter_rates(const struct snapshot *before,
			  const struct snapshot *now, double secs,
			  struct rates *r)
{
	size_t i, n = before ? before->ncounters : 0;

	for (i = 0; i < now->ncounters; i++) {
		uint64_t value = now->counters[i].value;
		uint64_t old = i < n ? before->counters[i].value : value;

		r->counters[i] = value < old ? 0 : (double)(value - old) / secs;
	}
}

void rates_between(const struct snapshot *before, const struct snapshot *now,
		   struct rates *r)
{
	size_t i, servers = 0;
	double secs = 1;

	if (before && now->when_ms > before->when_ms)
		secs = (double)(now->when_ms - before->when_ms) / 1000;
	r->first = must(calloc(now->list.n + 1, sizeof(*r->first)));
	for (i = 0; i < now->list.n; i++) {
		r->first[i] = servers;
		servers += now->list.v[i].nservers;
	}
	r->services = must(calloc(now->list.n + 1, sizeof(*r->services)));
	r->servers = must(calloc(servers + 1, sizeof(*r->servers)));
	r->counters = must(calloc(now->ncounters + 1, sizeof(*r->counters)));
	r->total = rate_of(before ? &before->total : NULL, &now->total, secs);
	service_rates(before, now, secs, r);
	counter_rates(before, now, secs, r);
}

void rates_free(struct rates *r)
{
	free(r->first);
	free(r->services);
	free(r->servers);
	free(r->counters);
	memset(r, 0, sizeof(*r));
}

// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>

#include "args.h"
#include "err.h"
#include "filter.h"
#include "kern_latency.h"
#include "latency.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "repeat.h"
#include "stats_latency.h"
#include "wire.h"

enum {
	NAME, HANDSHAKES, HANDSHAKE_P50, HANDSHAKE_P99, HANDSHAKE_FAILED,
	ANSWERS, ANSWER_P50, ANSWER_P99, ANSWER_FAILED, NCOLS
};

static const struct column cols[NCOLS] = {
	[NAME] = { "name", "SERVICE / SERVER", .tree = true },
	[HANDSHAKES] = { "handshakes", "HANDSHAKES", .right = true },
	[HANDSHAKE_P50] = { "handshake-p50", "P50 ms", .right = true },
	[HANDSHAKE_P99] = { "handshake-p99", "P99 ms", .right = true },
	[HANDSHAKE_FAILED] = { "handshake-failed", "FAILED", .right = true },
	[ANSWERS] = { "answers", "ANSWERS", .right = true },
	[ANSWER_P50] = { "answer-p50", "P50 ms", .right = true },
	[ANSWER_P99] = { "answer-p99", "P99 ms", .right = true },
	[ANSWER_FAILED] = { "answer-failed", "FAILED", .right = true },
};

/* ---- table ---- */

static void put_ms(struct table *t, struct row *row, size_t col, double us)
{
	if (us < 0)
		table_cell(t, row, col, "-");
	else
		table_cell(t, row, col, us < 99950 ? "%.2f" : "%.0f", us / 1000);
}

/* @first: the column of the kind's number. */
static void put_kind(struct table *t, struct row *row, size_t first,
		     const struct latency *l)
{
	table_cell(t, row, first, "%llu", (unsigned long long)latency_count(l));
	put_ms(t, row, first + 1, latency_quantile(l, 0.5));
	put_ms(t, row, first + 2, latency_quantile(l, 0.99));
	table_cell(t, row, first + 3, "%llu",
		   (unsigned long long)(l->refused + l->unanswered));
}

static struct row *put_row(struct table *t, struct row *parent, const char *name,
			   const struct server_latency *l)
{
	static const struct server_latency none;
	struct row *row = table_row(t, parent);

	table_cell(t, row, NAME, "%s", name);
	put_kind(t, row, HANDSHAKES, l ? &l->handshake : &none.handshake);
	put_kind(t, row, ANSWERS, l ? &l->answer : &none.answer);
	return row;
}

static int print_table(const struct service_list *list, bool servers)
{
	struct table *t;
	int rc = table_new(&t, cols, NCOLS, NULL);
	size_t i, j;

	if (rc)
		return rc;
	for (i = 0; i < list->n; i++) {
		const struct service *svc = &list->v[i];
		struct server_latency all = service_latency(svc);
		struct row *row;

		if (!service_measures(svc))
			continue;
		row = put_row(t, NULL, svc_text(&svc->id), &all);
		for (j = 0; servers && j < svc->nservers; j++) {
			const struct server *s = &svc->servers[j];

			put_row(t, row, ip_port_text(s->af, &s->addr, s->port),
				s->latency);
		}
	}
	return table_print(t);
}

/* ---- JSON ---- */

static json_t *us_json(double us)
{
	return us < 0 ? json_null() : json_real(us);
}

static json_t *buckets_json(const struct latency *l)
{
	json_t *all = json_array();
	unsigned int i;

	for (i = 0; i < L4LB_LATENCY_BUCKETS; i++) {
		uint64_t end = latency_end(i);
		json_t *below = end ? json_integer((json_int_t)end) : json_null();

		if (l->bucket[i])
			json_array_append_new(all,
					      json_pack("{s:O, s:I}", "below_us", below,
							"count",
							(json_int_t)l->bucket[i]));
		json_decref(below);
	}
	return all;
}

static json_t *kind_json(const struct latency *l)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:o}",
			 "count", (json_int_t)latency_count(l),
			 "mean_us", us_json(latency_mean(l)),
			 "p50_us", us_json(latency_quantile(l, 0.5)),
			 "p90_us", us_json(latency_quantile(l, 0.9)),
			 "p99_us", us_json(latency_quantile(l, 0.99)),
			 "refused", (json_int_t)l->refused,
			 "unanswered", (json_int_t)l->unanswered,
			 "buckets", buckets_json(l));
}

static json_t *one_json(const char *id, const struct server_latency *l)
{
	static const struct server_latency none;

	return json_pack("{s:s, s:o, s:o}", "id", id,
			 "handshake", kind_json(l ? &l->handshake : &none.handshake),
			 "answer", kind_json(l ? &l->answer : &none.answer));
}

static json_t *service_json(const struct service *svc, bool servers)
{
	struct server_latency all = service_latency(svc);
	json_t *o = one_json(svc_word(&svc->id), &all), *list = json_array();
	size_t i;

	for (i = 0; servers && i < svc->nservers; i++) {
		const struct server *s = &svc->servers[i];

		json_array_append_new(list,
				      one_json(ip_port_text(s->af, &s->addr, s->port),
					       s->latency));
	}
	if (servers)
		json_object_set(o, "servers", list);
	json_decref(list);
	return o;
}

static int print_json(const struct service_list *list, bool servers)
{
	json_t *doc = doc_new(), *services = json_array();
	size_t i;

	if (opt.watch_secs)
		json_object_set_new(doc, "time", json_real(repeat_time()));
	for (i = 0; i < list->n; i++)
		if (service_measures(&list->v[i]))
			json_array_append_new(services,
					      service_json(&list->v[i], servers));
	json_object_set_new(doc, "services", services);
	return print_doc(doc);
}

/* ---- the command ---- */

static int not_measured(const struct svc_id *id)
{
	const char *text = svc_text(id);
	int rc = fail(RC_MISSING, text, "its latency is not measured");

	hint("try: ipvsctl service change %s latency on", text);
	return rc;
}

static int read_list(const struct filter *f, struct service_list *list)
{
	int err, rc = filter_read(f, list);

	if (rc)
		return rc;
	if (f->by_id && list->n == 1 && !service_measures(&list->v[0]))
		return not_measured(&f->id);
	err = kern_latency(list, f->by_id ? &f->id : NULL);
	return err ? refuse(err, NULL, "the latency of real servers") : RC_OK;
}

int stats_latency_print(const struct filter *f, bool servers)
{
	struct service_list list = { 0 };
	int rc = wire_open();

	if (!rc && !wire_has_own())
		rc = refuse(-EOPNOTSUPP, NULL, "the latency of real servers");
	if (!rc)
		rc = read_list(f, &list);
	if (!rc)
		rc = opt.json ? print_json(&list, servers) : print_table(&list, servers);
	service_list_free(&list);
	return rc;
}

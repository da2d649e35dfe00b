// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl stats`: counters and rates. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "err.h"
#include "filter.h"
#include "kern.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "outfile.h"
#include "proc.h"
#include "prometheus.h"
#include "refuse.h"
#include "repeat.h"
#include "snapshot.h"
#include "stats_latency.h"
#include "wire.h"

enum { NAME, CONNS, INPKTS, OUTPKTS, INBYTES, OUTBYTES, NCOLS };

static const struct column total_cols[NCOLS] = {
	[NAME] = { "name", "SERVICE / SERVER", .tree = true },
	[CONNS] = { "conns", "CONNS", .right = true },
	[INPKTS] = { "inpkts", "IN PKTS", .right = true },
	[OUTPKTS] = { "outpkts", "OUT PKTS", .right = true },
	[INBYTES] = { "inbytes", "IN BYTES", .right = true },
	[OUTBYTES] = { "outbytes", "OUT BYTES", .right = true },
};

static const struct column rate_cols[NCOLS] = {
	[NAME] = { "name", "SERVICE / SERVER", .tree = true },
	[CONNS] = { "conns", "CONN/s", .right = true },
	[INPKTS] = { "inpkts", "IN PKT/s", .right = true },
	[OUTPKTS] = { "outpkts", "OUT PKT/s", .right = true },
	[INBYTES] = { "inbytes", "IN BYTE/s", .right = true },
	[OUTBYTES] = { "outbytes", "OUT BYTE/s", .right = true },
};

static json_t *counters_json(const struct counters *c, bool rates)
{
	const struct { const char *key; uint64_t value; } fields[] = {
		{ "conns", c->conns },
		{ "in_packets", c->inpkts },
		{ "out_packets", c->outpkts },
		{ "in_bytes", c->inbytes },
		{ "out_bytes", c->outbytes },
		{ "conns_per_second", c->cps },
		{ "in_packets_per_second", c->inpps },
		{ "out_packets_per_second", c->outpps },
		{ "in_bytes_per_second", c->inbps },
		{ "out_bytes_per_second", c->outbps },
	};
	size_t i, n = rates ? ARRAY_SIZE(fields) : ARRAY_SIZE(fields) / 2;
	json_t *o = json_object();

	for (i = 0; i < n; i++)
		json_object_set_new(o, fields[i].key,
				    json_integer((json_int_t)fields[i].value));
	return o;
}

static json_t *bands_json(const struct service *svc)
{
	json_t *bands = json_array();
	size_t i;

	for (i = 0; i < L4LB_BANDS; i++) {
		uint32_t end = policy_band_end(&svc->policy, i);
		const struct band *b = &svc->bands[i];
		json_t *band = json_pack("{s:o, s:I, s:I}", "below",
					 end ? json_integer(end) : json_null(),
					 "out_packets", (json_int_t)b->packets,
					 "out_bytes", (json_int_t)b->bytes);

		json_array_append_new(bands, band);
		if (!end)
			break;
	}
	return bands;
}

static json_t *servers_json(const struct service *svc)
{
	json_t *servers = json_array();
	size_t i;

	for (i = 0; i < svc->nservers; i++) {
		const struct server *s = &svc->servers[i];
		const char *name = ip_port_text(s->af, &s->addr, s->port);
		json_t *one = json_pack("{s:s, s:o}", "id", name, "stats",
				      counters_json(&s->stats, true));

		json_array_append_new(servers, one);
	}
	return servers;
}

static json_t *shadow_json(const struct service *svc)
{
	return json_pack("{s:s, s:I, s:I, s:I}", "scheduler", svc->policy.shadow,
			 "choices", (json_int_t)svc->shadow.choices,
			 "agreed", (json_int_t)svc->shadow.agreed,
			 "refused", (json_int_t)svc->shadow.refused);
}

static json_t *service_stats_json(const struct service *svc, bool servers)
{
	json_t *o = json_pack("{s:s, s:o}", "id", svc_word(&svc->id), "stats",
			      counters_json(&svc->stats, true));

	if (servers)
		json_object_set_new(o, "servers", servers_json(svc));
	if (svc->has_bands)
		json_object_set_new(o, "bands", bands_json(svc));
	if (svc->has_limited)
		json_object_set_new(o, "limited",
				    json_integer((json_int_t)svc->limited));
	if (svc->shadow.known)
		json_object_set_new(o, "shadow", shadow_json(svc));
	return o;
}

/* What is asked for, and in which form. */
struct request {
	struct filter filter;
	bool whole;		/* no filter: totals of the namespace, too */
	bool rate, latency, servers, prometheus;
};

static int stats_json(const struct service_list *list,
		      const struct counters *total, bool servers)
{
	json_t *doc = doc_new(), *services = json_array();
	size_t i;

	if (opt.watch_secs)
		json_object_set_new(doc, "time", json_real(repeat_time()));
	for (i = 0; i < list->n; i++)
		json_array_append_new(services,
				      service_stats_json(&list->v[i], servers));
	if (total)
		json_object_set_new(doc, "total", counters_json(total, true));
	json_object_set_new(doc, "services", services);
	return print_doc(doc);
}

static struct row *stats_row(struct table *t, struct row *parent,
			     const char *name, const struct counters *c,
			     bool rate)
{
	const uint64_t totals[NCOLS] = {
		0, c->conns, c->inpkts, c->outpkts, c->inbytes, c->outbytes
	};
	const uint64_t rates[NCOLS] = {
		0, c->cps, c->inpps, c->outpps, c->inbps, c->outbps
	};
	struct row *row = table_row(t, parent);
	size_t i;

	table_cell(t, row, NAME, "%s", name);
	for (i = CONNS; i < NCOLS; i++)
		table_cell(t, row, i, "%llu", (unsigned long long)
			   (rate ? rates[i] : totals[i]));
	return row;
}

/* `priority las`: the replies that were sent in each band. */
static void band_rows(struct table *t, struct row *parent,
		      const struct service *svc)
{
	size_t i;

	for (i = 0; i < L4LB_BANDS; i++) {
		uint32_t end = policy_band_end(&svc->policy, i);
		struct row *row = table_row(t, parent);

		if (end)
			table_cell(t, row, NAME, "band %zu, below %s", i,
				   size_text(end));
		else
			table_cell(t, row, NAME, "band %zu, the rest", i);
		table_cell(t, row, OUTPKTS, "%llu",
			   (unsigned long long)svc->bands[i].packets);
		table_cell(t, row, OUTBYTES, "%llu",
			   (unsigned long long)svc->bands[i].bytes);
		if (!end)
			break;
	}
}

static void service_rows(struct table *t, const struct service *svc,
			 const struct request *r)
{
	struct row *row = stats_row(t, NULL, svc_text(&svc->id), &svc->stats,
				    r->rate);
	size_t i;

	for (i = 0; r->servers && i < svc->nservers; i++) {
		const struct server *s = &svc->servers[i];

		stats_row(t, row, ip_port_text(s->af, &s->addr, s->port),
			  &s->stats, r->rate);
	}
	if (svc->has_bands && !r->rate)
		band_rows(t, row, svc);
	if (!svc->has_limited || r->rate)
		return;
	row = table_row(t, row);
	table_cell(t, row, NAME, "refused by a limit");
	table_cell(t, row, CONNS, "%llu", (unsigned long long)svc->limited);
}

static int stats_table(const struct service_list *list,
		       const struct counters *total, const struct request *r)
{
	struct table *t;
	size_t i;
	int rc;

	rc = table_new(&t, r->rate ? rate_cols : total_cols, NCOLS, NULL);
	if (rc)
		return rc;
	if (total)
		stats_row(t, NULL, "all", total, r->rate);
	for (i = 0; i < list->n; i++)
		service_rows(t, &list->v[i], r);
	return table_print(t);
}

/* @prometheus: is it that form? NULL: @what has no such form. */
static int check_format(const char *what, bool *prometheus)
{
	static const char *const known[] = {
		"table", "json", "prometheus", NULL
	};
	bool metrics = opt.format && !strcmp(opt.format, "prometheus");

	if (prometheus)
		*prometheus = metrics;
	if (!opt.format || !strcmp(opt.format, "table") ||
	    (metrics && prometheus))
		return RC_OK;
	if (metrics)
		return fail(RC_USAGE, NULL,
			    "%s has no form prometheus; \"stats\" has it", what);
	if (strcmp(opt.format, "json"))
		return arg_unknown(NULL, "format", opt.format, known);
	opt.json = true;
	return RC_OK;
}

static void percpu_json(const char *cpu, const struct counters *c, void *arg)
{
	json_t *o = counters_json(c, false);

	json_object_set_new(o, "cpu", json_string(cpu));
	json_array_append_new(arg, o);
}

static void percpu_row(const char *cpu, const struct counters *c, void *arg)
{
	stats_row(arg, NULL, cpu, c, false);
}

static int stats_percpu(struct args *a)
{
	static struct column cols[NCOLS];
	struct table *t;
	json_t *doc;
	int rc = check_format("stats percpu", NULL);

	if (!rc)
		rc = arg_end(a, NULL);
	if (rc)
		return rc;
	if (opt.json) {
		json_t *cpus = json_array();

		doc = doc_new();
		json_object_set_new(doc, "cpus", cpus);
		rc = proc_percpu(percpu_json, cpus);
		if (!rc)
			return print_doc(doc);
		json_decref(doc);
		return rc;
	}
	memcpy(cols, total_cols, sizeof(cols));
	cols[NAME] = (struct column){ "name", "CPU", .right = true };
	rc = table_new(&t, cols, NCOLS, NULL);
	if (!rc) {
		rc = proc_percpu(percpu_row, t);
		if (!rc)
			return table_print(t);
		table_free(t);
	}
	return rc;
}

static int print_metrics(void *arg)
{
	const struct request *r = arg;
	struct snapshot s;
	int rc = snapshot_read(&r->filter, &s);

	if (rc)
		return rc;
	prometheus_print(&s, r->servers, r->whole);
	snapshot_free(&s);
	return RC_OK;
}

static int print_stats(void *arg)
{
	const struct request *r = arg;
	struct service_list list = { 0 };
	struct counters total;
	int rc = filter_read(&r->filter, &list);

	if (!rc && r->whole)
		rc = proc_totals(&total);
	if (!rc)
		rc = opt.json ? stats_json(&list, r->whole ? &total : NULL,
					   r->servers)
			      : stats_table(&list, r->whole ? &total : NULL, r);
	service_list_free(&list);
	return rc;
}

static int print_latency(void *arg)
{
	const struct request *r = arg;

	return stats_latency_print(&r->filter, r->servers);
}

static int print_request(void *arg)
{
	const struct request *r = arg;

	return outfile_write(opt.output, r->prometheus ? print_metrics :
			     r->latency ? print_latency : print_stats, arg);
}

/* Takes "by service" or "by server" out of the words. */
static int parse_by(struct args *a, struct request *r)
{
	static const char *const known[] = { "service", "server", NULL };
	const char *word;
	int i;

	r->servers = true;
	for (i = a->pos; i < a->count && strcmp(a->word[i], "by"); i++)
		;
	if (i == a->count)
		return RC_OK;
	word = i + 1 < a->count ? a->word[i + 1] : NULL;
	if (!word)
		return fail(RC_USAGE, NULL,
			    "\"by\" needs a value: service or server");
	r->servers = !strcmp(word, "server");
	if (!r->servers && strcmp(word, "service"))
		return arg_unknown(NULL, "grouping", word, known);
	memmove(&a->word[i], &a->word[i + 2],
		(size_t)(a->count - i - 2) * sizeof(a->word[0]));
	a->count -= 2;
	return RC_OK;
}

enum mode { TOTALS, RATES, LATENCY };

static int show_mode(struct args *a, enum mode mode)
{
	struct request r = { .rate = mode == RATES, .latency = mode == LATENCY };
	int rc = check_format("stats latency", r.latency ? NULL : &r.prometheus);

	if (!rc)
		rc = parse_by(a, &r);
	r.whole = !arg_peek(a);
	if (!rc)
		rc = filter_parse(a, &r.filter, true);
	r.filter.alone = !r.servers && !r.prometheus && !r.latency;
	if (!rc && r.prometheus && opt.watch_secs && !opt.output) {
		rc = fail(RC_USAGE, NULL,
			  "metrics that are printed again need a file");
		hint("try: --output FILE");
	}
	return rc ? rc : repeat_run(print_request, &r);
}

static int stats_rate(struct args *a)
{
	return show_mode(a, RATES);
}

static int stats_total(struct args *a)
{
	return show_mode(a, TOTALS);
}

static int stats_latency(struct args *a)
{
	return show_mode(a, LATENCY);
}

/* The mode may also be the last word. */
static int stats_show(struct args *a)
{
	static const char *const words[] = { "total", "rate", "latency" };
	const char *last = a->pos < a->count ? a->word[a->count - 1] : "";
	enum mode mode;

	/* "sort rate" is a sort key */
	if (a->count - a->pos >= 2 && !strcmp(a->word[a->count - 2], "sort"))
		return show_mode(a, TOTALS);
	for (mode = TOTALS; mode <= LATENCY; mode++)
		if (!strcmp(last, words[mode])) {
			a->count--;
			return show_mode(a, mode);
		}
	return show_mode(a, TOTALS);
}

static int stats_zero(struct args *a)
{
	bool one = !!arg_peek(a);
	struct svc_id id;
	int err, rc = RC_OK;

	if (one)
		rc = parse_svc_id(a, &id);
	if (!rc)
		rc = arg_end(a, NULL);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_zero(one ? &id : NULL);
	if (err == -ESRCH && one)
		return missing_service(&id);
	return err ? refuse(err, NULL, "zeroing the counters") : RC_OK;
}

enum { SHOW_OPTIONS = OPT_FORMAT | OPT_WATCH | OPT_OUTPUT };

static const struct verb verbs[] = {
	{ "show", stats_show, "[ID [SRV]] [FILTER]... [by {service|server}] [rate|total|latency]",
	  "counters (or rates) of services and servers", SHOW_OPTIONS },
	{ "rate", stats_rate, "[ID [SRV]] [FILTER]... [by {service|server}]",
	  "rates per second", SHOW_OPTIONS },
	{ "total", stats_total, "[ID [SRV]] [FILTER]... [by {service|server}]",
	  "counters since the start or the last zero", SHOW_OPTIONS },
	{ "latency", stats_latency, "[ID [SRV]] [FILTER]... [by {service|server}]",
	  "how long servers take to answer, of services with \"latency on\"", SHOW_OPTIONS },
	{ "percpu", stats_percpu, "", "the namespace's counters for each CPU",
	  OPT_FORMAT },
	{ "zero", stats_zero, "[ID]", "set the counters of one service, or of all, to 0",
	  0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_stats = {
	"stats", NULL, verbs, "counters and rates", NOUN_FIRST
};

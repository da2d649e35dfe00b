// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl scheduler stats`: what a service's scheduler counts, and what its shadow would
 * have done.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "err.h"
#include "fairness.h"
#include "ident.h"
#include "kern_l4lb.h"
#include "kern_shadow.h"
#include "kern_trial.h"
#include "lookup.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "shadow.h"
#include "wire.h"

enum { SERVERS_SHOWN = 24 };	/* without -v */

/* The scheduler itself, and its shadow. */
enum { REAL, SHADOW, SIDES };

struct report {
	struct svc_id id;
	char scheduler[16];
	struct sched_info sched;
	bool counts;		/* .sched has some */
	bool has_shadow;
	struct shadow shadow;
	/* What each side has given to the servers, for fairness_of(). */
	struct trial_server *given[SIDES];
	double all[SIDES];
};

static double part(double number, double all)
{
	return all > 0 ? number / all : 0;
}

static const struct shadow_load *load_of(const struct shadow_server *srv, int side)
{
	return side == REAL ? &srv->real : &srv->shadow;
}

static int weigh(struct report *r)
{
	int side;
	size_t i;

	for (side = 0; side < SIDES; side++) {
		r->given[side] = calloc(r->shadow.nservers + 1,
					sizeof(*r->given[side]));
		if (!r->given[side])
			return fail(RC_REFUSED, NULL, "out of memory");
		for (i = 0; i < r->shadow.nservers; i++) {
			const struct shadow_server *srv = &r->shadow.servers[i];

			r->given[side][i].weight = srv->weight;
			r->given[side][i].chosen = load_of(srv, side)->conns;
			r->all[side] += (double)load_of(srv, side)->conns;
		}
	}
	return RC_OK;
}

/* ---- JSON ---- */

static json_t *real_or_null(bool known, double value)
{
	return known ? json_real(value) : json_null();
}

static json_t *counts_json(const struct sched_info *sched)
{
	json_t *counts = json_object();
	unsigned int i;

	for (i = 0; i < sched->n; i++)
		if (sched->options[i].count)
			json_object_set_new(counts, sched->options[i].name,
					    json_integer(sched->options[i].value));
	return counts;
}

static json_t *side_json(const struct report *r, int side)
{
	struct fairness f = fairness_of(r->given[side], r->shadow.nservers);
	json_t *o = json_pack("{s:s, s:I, s:o, s:o, s:o}", "scheduler",
			      side == REAL ? r->scheduler : r->shadow.scheduler,
			      "connections", (json_int_t)r->all[side],
			      "max_over_mean", real_or_null(f.known, f.max_over_mean),
			      "cv", real_or_null(f.known, f.cv),
			      "jain", real_or_null(f.known, f.jain));

	if (side == SHADOW)
		json_object_set_new(o, "counts", counts_json(&r->shadow.sched));
	return o;
}

static json_t *load_json(const struct report *r, const struct shadow_server *srv,
			 int side)
{
	const struct shadow_load *load = load_of(srv, side);

	return json_pack("{s:I, s:f, s:I, s:I}",
			 "connections", (json_int_t)load->conns,
			 "share", part((double)load->conns, r->all[side]),
			 "active", (json_int_t)load->active,
			 "inactive", (json_int_t)load->inactive);
}

static json_t *servers_json(const struct report *r)
{
	double weights = weights_of(r->given[REAL], r->shadow.nservers);
	json_t *all = json_array();
	size_t i;

	for (i = 0; i < r->shadow.nservers; i++) {
		const struct shadow_server *srv = &r->shadow.servers[i];

		json_array_append_new(all,
				      json_pack("{s:s, s:I, s:f, s:o, s:o}",
						"server", ip_port_text(srv->af, &srv->addr,
								       srv->port),
						"weight", (json_int_t)srv->weight,
						"fair", part(srv->weight, weights),
						"real", load_json(r, srv, REAL),
						"shadow", load_json(r, srv, SHADOW)));
	}
	return all;
}

static json_t *shadow_json(const struct report *r)
{
	const struct shadow *s = &r->shadow;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
			 "service", svc_word(&r->id),
			 "age_ms", (json_int_t)s->age,
			 "choices", (json_int_t)s->choices,
			 "agreed", (json_int_t)s->agreed,
			 "refused", (json_int_t)s->refused,
			 "real", side_json(r, REAL),
			 "shadow", side_json(r, SHADOW),
			 "servers", servers_json(r));
}

static int print_json(const struct report *r)
{
	json_t *doc = doc_new();

	json_object_set_new(doc, "counts", counts_json(&r->sched));
	json_object_set_new(doc, "shadow", r->has_shadow ? shadow_json(r) : json_null());
	return print_doc(doc);
}

/* ---- text ---- */

enum { NAME, ROLE, CHOICES, AGREED, REFUSED, MAX, CV, JAIN, COLUMNS };

static void summary_row(struct table *t, const struct report *r, int side)
{
	struct fairness f = fairness_of(r->given[side], r->shadow.nservers);
	const struct shadow *s = &r->shadow;
	struct row *row = table_row(t, NULL);

	table_cell(t, row, NAME, "%s", side == REAL ? r->scheduler : s->scheduler);
	table_cell(t, row, ROLE, side == REAL ? "in use" : "shadow");
	table_cell(t, row, CHOICES, "%llu", (unsigned long long)s->choices);
	if (side == SHADOW) {
		table_cell(t, row, AGREED, "%.2f %%",
			   100 * part((double)s->agreed, (double)s->choices));
		table_cell(t, row, REFUSED, "%llu", (unsigned long long)s->refused);
	} else {
		table_cell(t, row, AGREED, "-");
		table_cell(t, row, REFUSED, "-");
	}
	table_cell(t, row, MAX, f.known ? "%.3f" : "-", f.max_over_mean);
	table_cell(t, row, CV, f.known ? "%.4f" : "-", f.cv);
	table_cell(t, row, JAIN, f.known ? "%.4f" : "-", f.jain);
}

static int print_summary(const struct report *r)
{
	static const struct column cols[COLUMNS] = {
		[NAME] = { "scheduler", "SCHEDULER" },
		[ROLE] = { "role", "ROLE" },
		[CHOICES] = { "choices", "CHOICES", .right = true },
		[AGREED] = { "agreed", "AGREED", .right = true },
		[REFUSED] = { "refused", "REFUSED", .right = true },
		[MAX] = { "max", "MAX/MEAN", .right = true },
		[CV] = { "cv", "CV", .right = true },
		[JAIN] = { "jain", "JAIN", .right = true },
	};
	struct table *t;
	int side, rc = table_new(&t, cols, COLUMNS, NULL);

	for (side = 0; !rc && side < SIDES; side++)
		summary_row(t, r, side);
	return rc ? rc : table_print(t);
}

static void server_row(struct table *t, const struct report *r, size_t at,
		       double weights)
{
	const struct shadow_server *srv = &r->shadow.servers[at];
	struct row *row = table_row(t, NULL);
	int side;

	table_cell(t, row, 0, "%s", ip_port_text(srv->af, &srv->addr, srv->port));
	table_cell(t, row, 1, "%u", srv->weight);
	table_cell(t, row, 2, "%.2f", 100 * part(srv->weight, weights));
	for (side = 0; side < SIDES; side++) {
		const struct shadow_load *load = load_of(srv, side);
		size_t col = 3 + 3 * (size_t)side;

		table_cell(t, row, col, "%.2f",
			   100 * part((double)load->conns, r->all[side]));
		table_cell(t, row, col + 1, "%u", load->active);
		table_cell(t, row, col + 2, "%u", load->inactive);
	}
}

/* Shares in percent, and connections now: those that it has, and those that it would. */
static int print_servers(const struct report *r)
{
	static const struct column cols[] = {
		{ .key = "server", .head = "SERVER" },
		{ "weight", "WEIGHT", .right = true },
		{ "fair", "FAIR-%", .right = true },
		{ "real", "REAL-%", .right = true },
		{ "active", "ACTIVE", .right = true },
		{ "inactive", "INACTIVE", .right = true },
		{ "shadow", "SHADOW-%", .right = true },
		{ "shadow-active", "ACTIVE", .right = true },
		{ "shadow-inactive", "INACTIVE", .right = true },
	};
	double weights = weights_of(r->given[REAL], r->shadow.nservers);
	struct table *t;
	int rc = table_new(&t, cols, ARRAY_SIZE(cols), NULL);
	size_t i;

	for (i = 0; !rc && i < r->shadow.nservers; i++)
		server_row(t, r, i, weights);
	return rc ? rc : table_print(t);
}

static void count_rows(struct table *t, const struct sched_info *sched, const char *role)
{
	unsigned int i;

	for (i = 0; i < sched->n; i++) {
		const struct sched_option *o = &sched->options[i];
		struct row *row = o->count ? table_row(t, NULL) : NULL;

		if (!row)
			continue;
		table_cell(t, row, 0, "%s", o->name);
		table_cell(t, row, 1, "%u", o->value);
		table_cell(t, row, 2, "%s", role);
		table_cell(t, row, 3, "%s", o->what);
	}
}

/* What the scheduler and its shadow count themselves. */
static int print_counts(const struct report *r)
{
	static const struct column cols[] = {
		{ .key = "count", .head = "COUNT" },
		{ "value", "VALUE", .right = true },
		{ .key = "role", .head = "ROLE" },
		{ .key = "what", .head = "WHAT" },
	};
	struct table *t;
	int rc = table_new(&t, cols, ARRAY_SIZE(cols), NULL);

	if (rc)
		return rc;
	count_rows(t, &r->sched, "in use");
	count_rows(t, &r->shadow.sched, "shadow");
	return table_print(t);
}

static int print_text(const struct report *r)
{
	int rc;

	if (r->counts && !(opt.columns && r->has_shadow)) {
		rc = print_counts(r);
		if (rc || !r->has_shadow)
			return rc;
		putchar('\n');
	}
	rc = print_summary(r);
	if (rc || opt.columns || !r->shadow.nservers)
		return rc;
	if (r->shadow.nservers > SERVERS_SHOWN && !opt.verbose) {
		note("%zu real servers; -v lists their shares", r->shadow.nservers);
		return RC_OK;
	}
	putchar('\n');
	return print_servers(r);
}

/* ---- the command ---- */

static int no_shadow(const struct svc_id *id)
{
	const char *text = svc_text(id);
	int rc = fail(RC_MISSING, text, "it has no shadow");

	hint("try: ipvsctl service change %s shadow SCHED", text);
	return rc;
}

/* A shadow bpf has its service's program, if that is of bpf. */
static void note_no_program(const struct report *r)
{
	unsigned int i;

	if (!r->has_shadow || strcmp(r->shadow.scheduler, "bpf"))
		return;
	for (i = 0; !strcmp(r->scheduler, "bpf") && i < r->sched.n; i++)
		if (r->sched.options[i].file && r->sched.options[i].value)
			return;
	note("the shadow has no program: it chooses as wlc");
}

static int read_all(struct report *r)
{
	struct service svc;
	unsigned int i;
	int err, rc = service_lookup(&r->id, &svc, false);

	if (rc)
		return rc;
	snprintf(r->scheduler, sizeof(r->scheduler), "%s", svc.scheduler);
	service_free(&svc);
	err = kern_options(&r->id, &r->sched);
	if (err)
		return refuse(err, svc_text(&r->id), "the scheduler's options");
	for (i = 0; i < r->sched.n; i++)
		r->counts |= r->sched.options[i].count;
	err = kern_shadow(&r->id, &r->shadow);
	if (err && err != -ENOENT)
		return refuse(err, svc_text(&r->id), "the shadow");
	/* It may have gone while it was read. */
	r->has_shadow = !err && r->shadow.scheduler[0];
	if (!r->has_shadow)
		return r->counts ? RC_OK : no_shadow(&r->id);
	r->counts |= r->shadow.sched.n;
	note_no_program(r);
	return weigh(r);
}

int scheduler_stats(struct args *a)
{
	struct report r = { 0 };
	int side, rc = parse_svc_id(a, &r.id);

	if (!rc)
		rc = arg_end(a, svc_text(&r.id));
	if (!rc)
		rc = wire_open();
	if (!rc && !wire_has_own())
		rc = refuse(-EOPNOTSUPP, svc_text(&r.id), "the shadow");
	if (!rc)
		rc = read_all(&r);
	if (!rc)
		rc = opt.json ? print_json(&r) : print_text(&r);
	for (side = 0; side < SIDES; side++)
		free(r.given[side]);
	shadow_free(&r.shadow);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl scheduler compare`: what algorithms would choose, without a packet. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "compare.h"
#include "err.h"
#include "fairness.h"
#include "ident.h"
#include "kern_l4lb.h"
#include "kern_trial.h"
#include "lookup.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "scheduler_list.h"
#include "svcopt.h"
#include "wire.h"

enum {
	FLOWS = 65536,		/* unless the command names another number */
	TRIALS_MAX = 16,
	SERVERS_SHOWN = 24,	/* without -v */
};

struct comparison {
	struct svc_id id;
	struct trial_flows flows;
	char names[TRIALS_MAX][L4LB_NAME_LEN];
	struct trial trials[TRIALS_MAX];
	size_t n;
	unsigned int given;	/* bits of the words that were */
};

/* ---- words ---- */

static int add_name(struct comparison *c, const char *name)
{
	int rc = check_scheduler_name(name, NULL);
	size_t i;

	if (rc)
		return rc;
	for (i = 0; i < c->n; i++)
		if (!strcmp(c->names[i], name))
			return fail(RC_USAGE, NULL, "with: \"%s\" is given twice",
				    name);
	if (c->n == TRIALS_MAX)
		return fail(RC_USAGE, NULL, "with: at most %d algorithms",
			    TRIALS_MAX);
	snprintf(c->names[c->n++], sizeof(c->names[0]), "%s", name);
	return RC_OK;
}

/* SCHED[,SCHED]... */
static int parse_names(struct comparison *c, const char *list)
{
	char *text = strdup(list), *rest = text, *name;
	int rc = text ? RC_OK : fail(RC_REFUSED, NULL, "out of memory");

	while (!rc && (name = strsep(&rest, ",")))
		rc = *name ? add_name(c, name)
			   : fail(RC_USAGE, NULL,
				  "bad list of algorithms \"%s\": write mh,wlc",
				  list);
	free(text);
	return rc;
}

static int parse_without(struct comparison *c, const char *word)
{
	struct srv_id *without = &c->flows.without;
	int rc = parse_srv_word(word, svc_text(&c->id), without);

	if (!without->has_port)
		without->port = svc_server_port(&c->id);
	c->flows.lacks = true;
	return rc;
}

static int check_word(struct comparison *c, const char *word)
{
	static const char *const known[] = {
		"with", "flows", "clients", "hold", "seed", "without", NULL
	};
	unsigned int i = 0;

	while (known[i] && strcmp(word, known[i]))
		i++;
	if (!known[i])
		return arg_unknown(svc_text(&c->id), "word", word, known);
	if (c->given & 1U << i)
		return fail(RC_USAGE, svc_text(&c->id), "\"%s\" is given twice",
			    word);
	c->given |= 1U << i;
	return RC_OK;
}

/* How many, or "live": those of connections. */
static int parse_clients(struct comparison *c, struct args *a)
{
	const struct range range = RANGE(1, L4LB_TRIAL_FLOWS_MAX);
	const char *value = arg_peek(a), *object = svc_text(&c->id);

	if (!value || strspn(value, "0123456789") == strlen(value))
		return arg_u32(a, object, "clients", range, &c->flows.clients);
	if (strcmp(value, "live"))
		return fail(RC_USAGE, object,
			    "bad clients \"%s\": write a number, or live", value);
	arg_next(a);
	c->flows.live = true;
	return RC_OK;
}

static int parse_option(struct comparison *c, struct args *a, const char *word)
{
	struct trial_flows *f = &c->flows;
	const struct {
		const char *name;
		uint32_t *value;
		struct range range;
	} numbers[] = {
		{ "flows", &f->flows, RANGE(1, L4LB_TRIAL_FLOWS_MAX) },
		{ "hold", &f->hold, RANGE(1, L4LB_TRIAL_FLOWS_MAX) },
		{ "seed", &f->seed, RANGE(0, UINT32_MAX) },
	};
	const char *object = svc_text(&c->id), *value;
	size_t i;
	int rc = check_word(c, word);

	if (rc)
		return rc;
	if (!strcmp(word, "clients"))
		return parse_clients(c, a);
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(word, numbers[i].name))
			return arg_u32(a, object, word, numbers[i].range,
				       numbers[i].value);
	rc = arg_value(a, object, word, &value);
	if (rc)
		return rc;
	return strcmp(word, "with") ? parse_without(c, value)
				    : parse_names(c, value);
}

static int parse(struct comparison *c, struct args *a)
{
	int rc = parse_svc_id(a, &c->id);

	c->flows.flows = FLOWS;
	while (!rc && arg_peek(a))
		rc = parse_option(c, a, arg_next(a));
	return rc;
}

/* Without `with`: all that are loaded. */
static int all_loaded(struct comparison *c)
{
	struct sched_infos infos;
	int err = kern_schedulers(&infos), rc = RC_OK;
	unsigned int i;

	for (i = 0; !err && !rc && i < infos.n; i++)
		if (strcmp(infos.v[i].name, "none"))
			rc = add_name(c, infos.v[i].name);
	free(infos.v);
	return err ? refuse(err, NULL, "reading the schedulers") : rc;
}

/* ---- output ---- */

static double part(double number, double all)
{
	return all > 0 ? number / all : 0;
}

static json_t *servers_json(const struct trial *t)
{
	double weights = weights_of(t->servers, t->nservers);
	json_t *all = json_array(), *o;
	size_t i;

	for (i = 0; i < t->nservers; i++) {
		const struct trial_server *srv = &t->servers[i];

		o = json_pack("{s:s, s:I, s:I, s:f, s:f}", "server",
			      ip_port_text(srv->af, &srv->addr, srv->port),
			      "weight", (json_int_t)srv->weight,
			      "chosen", (json_int_t)srv->chosen,
			      "share", part(srv->chosen, t->flows),
			      "fair", part(srv->weight, weights));
		json_array_append_new(all, o);
	}
	return all;
}

static json_t *trial_json(const struct comparison *c, const struct trial *t)
{
	struct fairness f = fairness_of(t->servers, t->nservers);
	json_t *o = json_pack("{s:s, s:I, s:I, s:{s:I, s:I}}",
			      "scheduler", t->scheduler,
			      "flows", (json_int_t)t->flows,
			      "refused", (json_int_t)t->refused, "cost_ns",
			      "p50", (json_int_t)t->cost_50,
			      "p99", (json_int_t)t->cost_99);

	if (c->flows.live)
		json_object_set_new(o, "live", json_integer(t->live));
	json_object_set_new(o, "max_over_mean",
			    f.known ? json_real(f.max_over_mean) : json_null());
	json_object_set_new(o, "cv", f.known ? json_real(f.cv) : json_null());
	json_object_set_new(o, "jain", f.known ? json_real(f.jain) : json_null());
	if (c->flows.lacks) {
		json_object_set_new(o, "lost", json_integer(t->lost));
		json_object_set_new(o, "moved", t->compares ?
				    json_integer(t->moved) : json_null());
	}
	json_object_set_new(o, "servers", servers_json(t));
	return o;
}

static int print_json(const struct comparison *c)
{
	const struct trial_flows *f = &c->flows;
	json_t *doc = doc_new(), *all = json_array();
	json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:I}",
			      "service", svc_word(&c->id),
			      "flows", (json_int_t)f->flows,
			      "clients", (json_int_t)f->clients,
			      "hold", (json_int_t)f->hold,
			      "seed", (json_int_t)f->seed);
	const char *name;
	size_t i;

	if (f->lacks) {
		name = ip_port_text(f->without.af, &f->without.addr,
				    f->without.port);
		json_object_set_new(o, "without", json_string(name));
	}
	for (i = 0; i < c->n; i++)
		json_array_append_new(all, trial_json(c, &c->trials[i]));
	json_object_set_new(o, "trials", all);
	json_object_set_new(doc, "comparison", o);
	return print_doc(doc);
}

enum { NAME, MAX, CV, JAIN, REFUSED, LOST, MOVED, P50, P99, COLUMNS };

static void moved_cells(struct table *t, struct row *row,
			const struct comparison *c, const struct trial *trial)
{
	if (!c->flows.lacks)
		return;
	table_cell(t, row, LOST, "%.2f %%", 100 * part(trial->lost, trial->flows));
	if (trial->compares)
		table_cell(t, row, MOVED, "%.2f %%",
			   100 * part(trial->moved, trial->flows));
	else
		table_cell(t, row, MOVED, "-");
}

static int print_summary(const struct comparison *c)
{
	static const struct column cols[COLUMNS] = {
		[NAME] = { "scheduler", "SCHEDULER" },
		[MAX] = { "max", "MAX/MEAN", .right = true },
		[CV] = { "cv", "CV", .right = true },
		[JAIN] = { "jain", "JAIN", .right = true },
		[REFUSED] = { "refused", "REFUSED", .right = true },
		[LOST] = { "lost", "LOST", .right = true, .extra = true },
		[MOVED] = { "moved", "MOVED", .right = true, .extra = true },
		[P50] = { "p50", "P50-NS", .right = true },
		[P99] = { "p99", "P99-NS", .right = true },
	};
	static const char *const compared[] = { "lost", "moved", NULL };
	struct table *t;
	int rc = table_new(&t, cols, COLUMNS, c->flows.lacks ? compared : NULL);
	size_t i;

	for (i = 0; !rc && i < c->n; i++) {
		const struct trial *trial = &c->trials[i];
		struct fairness f = fairness_of(trial->servers, trial->nservers);
		struct row *row = table_row(t, NULL);

		table_cell(t, row, NAME, "%s", trial->scheduler);
		table_cell(t, row, MAX, f.known ? "%.3f" : "-", f.max_over_mean);
		table_cell(t, row, CV, f.known ? "%.4f" : "-", f.cv);
		table_cell(t, row, JAIN, f.known ? "%.4f" : "-", f.jain);
		table_cell(t, row, REFUSED, "%u", trial->refused);
		moved_cells(t, row, c, trial);
		table_cell(t, row, P50, "%u", trial->cost_50);
		table_cell(t, row, P99, "%u", trial->cost_99);
	}
	return rc ? rc : table_print(t);
}

static void share_cells(struct table *t, const struct comparison *c, size_t at,
			double weights)
{
	const struct trial_server *srv = &c->trials[0].servers[at];
	struct row *row = table_row(t, NULL);
	size_t i;

	table_cell(t, row, 0, "%s", ip_port_text(srv->af, &srv->addr, srv->port));
	table_cell(t, row, 1, "%u", srv->weight);
	table_cell(t, row, 2, "%.2f", 100 * part(srv->weight, weights));
	for (i = 0; i < c->n; i++)
		table_cell(t, row, 3 + i, "%.2f",
			   100 * part(c->trials[i].servers[at].chosen,
				      c->trials[i].flows));
}

/* The share of each real server, in percent, a column for each algorithm. */
static int print_shares(const struct comparison *c)
{
	struct column cols[3 + TRIALS_MAX] = {
		{ .key = "server", .head = "SERVER" },
		{ "weight", "WEIGHT", .right = true },
		{ "fair", "FAIR-%", .right = true },
	};
	const struct trial *first = &c->trials[0];
	double weights = weights_of(first->servers, first->nservers);
	struct table *t;
	size_t i;
	int rc;

	for (i = 0; i < c->n; i++)
		cols[3 + i] = (struct column){ c->names[i], c->names[i],
					       .right = true };
	rc = table_new(&t, cols, 3 + c->n, NULL);
	for (i = 0; !rc && i < first->nservers; i++)
		share_cells(t, c, i, weights);
	return rc ? rc : table_print(t);
}

static int print_text(const struct comparison *c)
{
	int rc = print_summary(c);

	if (rc || opt.columns || !c->n)
		return rc;
	if (c->trials[0].nservers > SERVERS_SHOWN && !opt.verbose) {
		note("%zu real servers; -v lists their shares",
		     c->trials[0].nservers);
		return RC_OK;
	}
	putchar('\n');
	return print_shares(c);
}

/* ---- the command ---- */

/* Linux 6.1 cannot send the module's sentences. */
static int refuse_trial(int err, const struct comparison *c, const char *name)
{
	const char *object = svc_text(&c->id);
	int rc;

	switch (err) {
	case -ENOENT:
		return scheduler_missing(object, name);
	case -EBUSY:
		rc = fail(RC_REFUSED, object, "another trial is under way");
		hint("try: the command again when it is over, 30 seconds at most");
		return rc;
	case -ENODATA:
		rc = fail(RC_REFUSED, object,
			  "a trial of %s asks the service's own program, and it has none",
			  name);
		hint("try: service change %s scheduler %s option program PATH, then compare others",
		     object, name);
		return rc;
	default:
		return refuse(err, object, "the trial");
	}
}

static bool same_servers(const struct trial *a, const struct trial *b)
{
	size_t i;

	for (i = 0; i < a->nservers && i < b->nservers; i++)
		if (a->servers[i].af != b->servers[i].af ||
		    a->servers[i].port != b->servers[i].port ||
		    a->servers[i].weight != b->servers[i].weight ||
		    !ip_equal(&a->servers[i].addr, &b->servers[i].addr))
			return false;
	return a->nservers == b->nservers;
}

/* The real servers are read for each algorithm. */
static int check_trial(const struct comparison *c, const struct trial *t)
{
	int rc;

	if (c->flows.live && !t->live) {
		rc = fail(RC_MISSING, svc_text(&c->id),
			  "it has no connections whose clients could begin more");
		hint("try: the command without clients live, for invented ones");
		return rc;
	}
	if (t->flows < c->flows.flows)
		note("%s: the time was up after %u flows", t->scheduler, t->flows);
	if (same_servers(t, &c->trials[0]))
		return RC_OK;
	rc = fail(RC_REFUSED, svc_text(&c->id),
		  "its real servers changed during the comparison");
	hint("try: the command again");
	return rc;
}

static int try_all(struct comparison *c)
{
	int err, rc = RC_OK;
	size_t i;

	for (i = 0; !rc && i < c->n; i++) {
		err = kern_trial(&c->id, c->names[i], &c->flows, &c->trials[i]);
		rc = err ? refuse_trial(err, c, c->names[i])
			 : check_trial(c, &c->trials[i]);
	}
	return rc;
}

static int find(const struct comparison *c)
{
	const char *object = svc_text(&c->id);
	struct service svc;
	struct server srv;
	int rc = service_lookup(&c->id, &svc, true);

	if (rc)
		return rc;
	if (!svc.nservers)
		rc = fail(RC_MISSING, object, "it has no real servers");
	service_free(&svc);
	if (rc) {
		hint("try: ipvsctl server add %s SRV", object);
		return rc;
	}
	return c->flows.lacks ? server_lookup(&c->id, &c->flows.without, &srv)
			      : RC_OK;
}

int scheduler_compare(struct args *a)
{
	struct comparison c = { 0 };
	size_t i;
	int rc = parse(&c, a);

	if (!rc)
		rc = wire_open();
	if (!rc && !wire_has_own())
		rc = refuse(-EOPNOTSUPP, svc_text(&c.id), "the trial");
	if (!rc)
		rc = find(&c);
	if (!rc && !c.n)
		rc = all_loaded(&c);
	if (!rc)
		rc = try_all(&c);
	if (!rc)
		rc = opt.json ? print_json(&c) : print_text(&c);
	for (i = 0; i < c.n; i++)
		trial_free(&c.trials[i]);
	return rc;
}

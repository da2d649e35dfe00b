// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl restore`: applies a configuration file. It is read and checked as a
 * whole before anything is sent. Then missing services and servers are added,
 * and those that differ are changed in place. Nothing is ever deleted, so
 * connections keep their servers. A second run has nothing to do, unless the file
 * names keys.
 *
 * l4lb gets all changes in one message and applies all of them or none. In-tree
 * ip_vs gets a command for each service and server; the first refusal ends it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "cmd.h"
#include "configfile.h"
#include "err.h"
#include "kern_drain.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "plan.h"
#include "refuse.h"
#include "source.h"
#include "wire.h"

static json_t *counts_json(const struct tally *t)
{
	return json_pack("{s:I, s:I, s:I, s:I}",
			 "added", (json_int_t)t->added,
			 "changed", (json_int_t)t->changed,
			 "unchanged", (json_int_t)t->same,
			 "not_in_file", (json_int_t)t->extra);
}

static int report(const struct plan *p)
{
	const struct tally *s = &p->services, *r = &p->servers;
	json_t *doc, *done;

	if (opt.json) {
		doc = doc_new();
		done = json_pack("{s:b, s:o, s:o}", "dry_run", opt.dry_run,
				 "services", counts_json(s),
				 "servers", counts_json(r));
		if (opt.dry_run)
			json_object_set_new(doc, "plan", plan_json());
		json_object_set_new(doc, "restore", done);
		return print_doc(doc);
	}
	if (opt.quiet)
		return RC_OK;
	printf("services: %zu %sadded, %zu %schanged, %zu unchanged\n",
	       s->added, opt.dry_run ? "would be " : "", s->changed,
	       opt.dry_run ? "would be " : "", s->same);
	printf("servers:  %zu %sadded, %zu %schanged, %zu unchanged\n",
	       r->added, opt.dry_run ? "would be " : "", r->changed,
	       opt.dry_run ? "would be " : "", r->same);
	if (s->extra || r->extra)
		printf("left alone, not in the file: %zu services, and %zu servers of the others\n",
		       s->extra, r->extra);
	return RC_OK;
}

static int restore_drain(const struct plan *p, const struct service *svc,
			 const struct server *srv)
{
	const struct server_drain *drain = &srv->drain;
	int err = 0, rc;

	if (drain->weight)
		err = kern_drain_weight(&svc->id, srv, drain->weight);
	if (!err && (drain->timed || drain->then))
		err = kern_drain(&svc->id, srv, drain->timed && !drain->left
				 ? 1 : drain->left, drain->then);
	if (!err)
		return RC_OK;
	rc = refuse_server(err, &svc->id, srv);
	plan_place(p, svc, srv);
	return rc;
}

/* What the drained servers of the file had before, and what follows. */
static int restore_drains(const struct plan *p)
{
	const struct service *svc;
	size_t i, j;
	int rc = RC_OK;

	for (i = 0; i < p->want.n; i++) {
		svc = &p->want.v[i];
		for (j = 0; j < svc->nservers && !rc; j++)
			if (svc->servers[j].drain.known)
				rc = restore_drain(p, svc, &svc->servers[j]);
	}
	if (!rc)
		return RC_OK;
	hint("the services are in effect; try: run restore again");
	return fail_code(RC_PARTIAL);
}

static int restore(struct args *a)
{
	const char *file = arg_next(a);
	struct source s = { 0 };
	struct plan p = { .file = "standard input", .source = &s };
	int rc = arg_end(a, "restore");

	if (file && strcmp(file, "-"))
		p.file = file;
	if (!rc && !file && isatty(STDIN_FILENO))
		note("reading the configuration from the terminal; Ctrl-D ends it");
	if (!rc)
		rc = configfile_read(file ? file : "-", &s, &p.want);
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = plan_read(&p);
	if (!rc)
		rc = plan_check(&p);
	if (!rc)
		rc = plan_apply(&p, "restore");
	if (!rc && wire_has_own() && !opt.dry_run)
		rc = restore_drains(&p);
	if (!rc)
		rc = report(&p);
	plan_free(&p);
	source_free(&s);
	return rc;
}

static const struct verb verbs[] = {
	{ "restore", restore, "[FILE]",
	  "add and change what FILE (or standard input) lists; delete nothing",
	  0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_restore = {
	"restore", NULL, verbs, "read what save or ipvsadm -Sn wrote", NOUN_SINGLE
};

// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl apply`: makes the kernel's services what a file says. The kernel is asked
 * what is there, and only the difference is sent; a second run sends nothing.
 */
#include <stdio.h>

#include "args.h"
#include "cmd.h"
#include "declared.h"
#include "err.h"
#include "opt.h"
#include "out.h"
#include "wire.h"

static json_t *tally_json(const struct tally *t)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}",
			 "added", (json_int_t)t->added,
			 "changed", (json_int_t)t->changed,
			 "removed", (json_int_t)t->removed,
			 "unchanged", (json_int_t)t->same,
			 "not_in_file", (json_int_t)t->extra);
}

static int report_json(const struct declared *d)
{
	json_t *doc = doc_new();

	if (opt.dry_run)
		json_object_set_new(doc, "plan", plan_json());
	json_object_set_new(doc, "apply",
			    json_pack("{s:b, s:b, s:o, s:o}",
				      "dry_run", opt.dry_run,
				      "timeouts", d->timeouts_differ,
				      "services", tally_json(&d->plan.services),
				      "servers", tally_json(&d->plan.servers)));
	return print_doc(doc);
}

static void print_tally(const char *what, const struct tally *t)
{
	const char *would = opt.dry_run ? "would be " : "";

	printf("%s %zu %sadded, %zu %schanged, %zu %sremoved, %zu unchanged\n",
	       what, t->added, would, t->changed, would, t->removed, would,
	       t->same);
}

static int report(const struct declared *d)
{
	const struct plan *p = &d->plan;

	if (opt.json)
		return report_json(d);
	if (opt.quiet)
		return RC_OK;
	if (!declared_differs(d)) {
		printf("no changes: %zu services, %zu servers\n",
		       p->services.same, p->servers.same);
	} else {
		print_tally("services:", &p->services);
		print_tally("servers: ", &p->servers);
	}
	if (p->services.extra || p->servers.extra)
		printf("left alone, not in the file: %zu services, and %zu servers of the others\n",
		       p->services.extra, p->servers.extra);
	return RC_OK;
}

static int apply(struct args *a)
{
	struct declared d;
	int rc = declared_open(&d, a, "apply");

	if (!rc)
		rc = declared_apply(&d);
	if (!rc)
		rc = report(&d);
	if (!rc && opt.given & OPT_DETAILED && declared_differs(&d))
		rc = RC_DIFF;
	declared_close(&d);
	return rc;
}

static const struct verb verbs[] = {
	{ "apply", apply, "FILE",
	  "add and change what FILE lists; with --prune, remove the rest",
	  OPT_PRUNE | OPT_DETAILED },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_apply = {
	"apply", NULL, verbs, "make the services what a file says", 1
};

// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl apply`: makes the kernel's services what a file says. The kernel is asked
 * what is there, and only the difference is sent; a second run sends nothing.
 */
#include <stdio.h>

#include "args.h"
#include "cmd.h"
#include "declared.h"
#include "err.h"
#include "guard.h"
#include "history.h"
#include "opt.h"
#include "out.h"
#include "tally.h"
#include "turn.h"
#include "undo.h"

static int report_json(const struct declared *d)
{
	json_t *doc = doc_new(), *result;

	if (opt.dry_run)
		json_object_set_new(doc, "plan", plan_json());
	result = json_pack("{s:b, s:b, s:{s:i, s:i}, s:o, s:o}",
			   "dry_run", opt.dry_run,
			   "timeouts", d->timeouts_differ, "xdp",
			   "attached", (int)d->xdp.on.n,
			   "detached", (int)d->xdp.off.n,
			   "services", tally_json(&d->plan.services),
			   "servers", tally_json(&d->plan.servers));
	if (opt.given & OPT_CONFIRM && declared_differs(d))
		json_object_set_new(result, "confirm_within",
				    json_integer(opt.confirm_secs));
	json_object_set_new(doc, "apply", result);
	return print_doc(doc);
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
		tally_print("services:", &p->services, true);
		tally_print("servers: ", &p->servers, true);
		if (xdp_change_any(&d->xdp))
			printf("xdp:      %zu devices attached, %zu detached\n",
			       d->xdp.on.n, d->xdp.off.n);
	}
	if (opt.given & OPT_CONFIRM && !opt.dry_run && declared_differs(d))
		printf("to keep this, within %u s: ipvsctl confirm\n",
		       opt.confirm_secs);
	if (p->services.extra || p->servers.extra)
		printf("left alone, not in the file: %zu services, and %zu servers of the others\n",
		       p->services.extra, p->servers.extra);
	return RC_OK;
}

/* What is kept for rollback is written before the kernel is told. */
static int change(struct declared *d, struct undo *u)
{
	bool kept = history_begin(u);
	int rc = declared_apply(d);

	u->applied = !rc;
	if (!rc && kept) {
		rc = undo_settle(u);
		/* With --confirm, it counts when it is confirmed. */
		if (!(opt.given & OPT_CONFIRM))
			history_commit(u->keys ? u : NULL);
	} else if (kept) {
		history_drop();
	}
	return rc;
}

/* In-tree ip_vs stopped half-way, or there is nothing to wait with: then nothing is
 * to stay.
 */
static int take_back(struct undo *u, int rc)
{
	struct plan p = { .prune = false };

	if ((rc == RC_PARTIAL || (rc && u->applied)) &&
	    opt.given & OPT_CONFIRM && !undo_run(u, &p)) {
		history_drop();
		hint("they were taken back: nothing was changed");
		return fail_code(RC_REFUSED);
	}
	return rc;
}

static int apply_file(struct args *a)
{
	struct undo u = { .keys = false };
	struct declared d;
	bool wait = false;
	int rc = declared_open(&d, a, "apply");

	if (!rc && !opt.dry_run) {
		declared_undo(&d, &u);
		wait = declared_differs(&d) && opt.given & OPT_CONFIRM;
		if (wait)
			rc = undo_hold(&u);
	}
	if (!rc && !opt.dry_run && declared_differs(&d))
		rc = take_back(&u, change(&d, &u));
	else if (!rc)
		rc = declared_apply(&d);
	if (!rc)
		rc = report(&d);
	if (!rc && wait)
		guard_wait(&u);
	if (!rc && opt.given & OPT_DETAILED && declared_differs(&d))
		rc = RC_DIFF;
	undo_free(&u);
	declared_close(&d);
	return rc;
}

static int apply(struct args *a)
{
	bool guarded = opt.given & OPT_CONFIRM && !opt.dry_run;
	int rc = opt.dry_run ? RC_OK : turn_take(guarded);

	if (rc || (guarded && !guard_begin(&rc)))
		return rc;
	return apply_file(a);
}

static const struct verb verbs[] = {
	{ "apply", apply, "FILE",
	  "add and change what FILE lists; with --prune, remove the rest",
	  OPT_PRUNE | OPT_DETAILED | OPT_CONFIRM | OPT_OWNER },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_apply = {
	"apply", NULL, verbs, "make the services what a file says", 1
};

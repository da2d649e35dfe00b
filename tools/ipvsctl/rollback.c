// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl rollback`: takes the last apply back, or the last N, one after the other. */
#include <stdio.h>

#include "args.h"
#include "cmd.h"
#include "err.h"
#include "history.h"
#include "opt.h"
#include "out.h"
#include "plan.h"
#include "tally.h"
#include "turn.h"
#include "undo.h"
#include "wire.h"

struct done {
	struct tally services, servers;
	size_t attached, detached;
};

static int one(struct done *done)
{
	struct tally *services = &done->services, *servers = &done->servers;
	struct plan p = { .prune = false };
	struct undo u;
	int rc = history_last(&u);

	if (!rc)
		rc = undo_check(&u);
	if (!rc)
		rc = undo_run(&u, &p);
	done->attached += u.xdp.off.n;
	done->detached += u.xdp.on.n;
	undo_free(&u);
	if (rc)
		return rc;
	if (!opt.dry_run)
		history_forget();
	services->added += p.services.added;
	services->changed += p.services.changed;
	services->removed += p.services.removed;
	servers->added += p.servers.added;
	servers->changed += p.servers.changed;
	servers->removed += p.servers.removed;
	return u.xdp_stays ? fail_code(RC_PARTIAL) : RC_OK;
}

static int report(uint32_t n, const struct done *d)
{
	json_t *doc, *done;

	if (opt.json) {
		doc = doc_new();
		if (opt.dry_run)
			json_object_set_new(doc, "plan", plan_json());
		done = json_pack("{s:b, s:I, s:{s:i, s:i}, s:o, s:o}",
				 "dry_run", opt.dry_run,
				 "applies", (json_int_t)n, "xdp",
				 "attached", (int)d->attached,
				 "detached", (int)d->detached,
				 "services", tally_json(&d->services),
				 "servers", tally_json(&d->servers));
		json_object_set_new(doc, "rollback", done);
		return print_doc(doc);
	}
	if (opt.quiet)
		return RC_OK;
	tally_print("services:", &d->services, false);
	tally_print("servers: ", &d->servers, false);
	if (d->attached || d->detached)
		printf("xdp:      %zu devices attached, %zu detached\n",
		       d->attached, d->detached);
	return RC_OK;
}

static int rollback(struct args *a)
{
	struct done done = { 0 };
	const char *word = arg_next(a);
	uint32_t n = 1, i;
	int rc = arg_end(a, "rollback");

	if (!rc && word && !parse_u32(word, 1, HISTORY_MAX, &n))
		rc = fail(RC_USAGE, "rollback",
			  "bad number \"%s\": write how many to take back, 1 to %d",
			  word, HISTORY_MAX);
	if (!rc && n > 1 && opt.dry_run)
		rc = fail(RC_USAGE, "rollback",
			  "--dry-run shows one step: leave the number out");
	if (!rc && !opt.dry_run)
		rc = turn_take(0);
	if (!rc)
		rc = wire_open();
	for (i = 0; i < n && !rc; i++)
		rc = one(&done);
	if (rc && i > 1) {
		hint("%u of %u were taken back before this one", i - 1, n);
		return fail_code(RC_PARTIAL);
	}
	return rc ? rc : report(n, &done);
}

static const struct verb verbs[] = {
	{ "rollback", rollback, "[N]",
	  "take the last apply back, or the last N", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_rollback = {
	"rollback", NULL, verbs, "take the last apply back", NOUN_SINGLE
};

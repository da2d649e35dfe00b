// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl confirm`: keeps what apply --confirm has changed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "err.h"
#include "opt.h"
#include "out.h"
#include "turn.h"

static int nobody_answers(void)
{
	int rc;

	if (errno != EACCES)
		return fail(RC_MISSING, "confirm",
			    "no change waits for a confirmation");
	rc = fail(RC_PERM, "confirm",
		  "not permitted to ask whether a change waits");
	hint("try: sudo ipvsctl confirm");
	return rc;
}

static int confirm(struct args *a)
{
	int rc = arg_end(a, "confirm");
	char answer[32];
	json_t *doc;

	if (rc)
		return rc;
	if (turn_ask(opt.dry_run ? "left" : "confirm", answer, sizeof(answer)))
		return nobody_answers();
	if (opt.json) {
		doc = doc_new();
		json_object_set_new(doc, "confirmed",
				    json_boolean(!opt.dry_run));
		return print_doc(doc);
	}
	if (opt.dry_run)
		printf("would be confirmed; %s s are left\n", answer);
	else if (!opt.quiet)
		puts("confirmed: the change stays");
	return RC_OK;
}

static const struct verb verbs[] = {
	{ "confirm", confirm, "", "keep what apply --confirm has changed", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_confirm = {
	"confirm", NULL, verbs, "keep what apply --confirm has changed",
	NOUN_SINGLE
};

// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl diff`: what apply would change, in the form of diff -u. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "declared.h"
#include "describe.h"
#include "difference.h"
#include "err.h"
#include "opt.h"
#include "out.h"

static void print_timeouts(struct difference *pr, const struct declared *d)
{
	struct kern_timeouts had = d->timeouts;
	const struct kern_timeouts *want = &d->file.timeouts;

	if (!d->timeouts_differ)
		return;
	had.tcp = want->tcp ? had.tcp : 0;
	had.tcp_fin = want->tcp_fin ? had.tcp_fin : 0;
	had.udp = want->udp ? had.udp : 0;
	difference_line(pr, '-', "", describe_timeouts(&had));
	difference_line(pr, '+', "", describe_timeouts(want));
}

static int finish(struct difference *pr, const struct declared *d)
{
	const struct plan *p = &d->plan;
	const struct tally *s = &p->services, *r = &p->servers;
	json_t *doc;

	if (pr->list) {
		doc = doc_new();
		json_object_set_new(doc, "diff", pr->list);
		return print_doc(doc);
	}
	if (opt.quiet)
		return RC_OK;
	if (declared_differs(d))
		printf("plan: %zu added, %zu changed, %zu removed\n",
		       s->added + r->added + d->xdp.on.n,
		       s->changed + r->changed + d->timeouts_differ,
		       s->removed + r->removed + d->xdp.off.n);
	if (s->extra || r->extra)
		note("left alone, not in the file: %zu services, and %zu servers of the others",
		     s->extra, r->extra);
	return RC_OK;
}

static int diff(struct args *a)
{
	struct difference pr = { .list = opt.json ? json_array() : NULL };
	struct declared d;
	int rc = declared_open(&d, a, "diff");

	if (!rc) {
		print_timeouts(&pr, &d);
		difference_xdp(&pr, &d.xdp);
		plan_walk(&d.plan, difference_see, &pr);
		rc = finish(&pr, &d);
	}
	if (!rc && declared_differs(&d))
		rc = RC_DIFF;
	declared_close(&d);
	return rc;
}

static const struct verb verbs[] = {
	{ "diff", diff, "FILE",
	  "print what apply would change; exit status 1 if there is anything",
	  OPT_PRUNE | OPT_OWNER },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_diff = {
	"diff", NULL, verbs, "print what apply would change", 1
};

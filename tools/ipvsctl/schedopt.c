// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "backend.h"
#include "describe.h"
#include "err.h"
#include "kern_l4lb.h"
#include "model.h"
#include "program.h"
#include "refuse.h"
#include "schedopt.h"
#include "scheduler_list.h"

static int wrong_flags(const struct service *svc, uint32_t wrong,
		       uint32_t known)
{
	struct service shown = *svc;
	char text[64];
	int rc;

	shown.flags = wrong;
	snprintf(text, sizeof(text), "%s", describe_flags(&shown));
	shown.flags = known;
	rc = fail(RC_USAGE, svc_text(&svc->id),
		  "scheduler %s does not have flags %s; it has: %s",
		  svc->scheduler, text, known ? describe_flags(&shown) : "none");
	hint("try: leave them out, or: flags %s",
	     known ? describe_flags(&shown) : "none");
	return rc;
}

static int unknown_option(const struct service *svc, const char *name,
			  const struct sched_info *info)
{
	const char *known[L4LB_OPTIONS_MAX + 1] = { NULL };
	char what[64] = "option of scheduler ";
	unsigned int i;
	int rc;

	if (!info->n) {
		rc = fail(RC_USAGE, svc_text(&svc->id),
			  "scheduler %s has no options", svc->scheduler);
		hint("try: ipvsctl scheduler list");
		return rc;
	}
	for (i = 0; i < info->n; i++)
		known[i] = info->options[i].name;
	strcat(what, svc->scheduler);
	return arg_unknown(svc_text(&svc->id), what, name, known);
}

static int check_option(const struct service *svc, struct svc_option *o,
			const struct sched_option *known)
{
	const char *object = svc_text(&svc->id);
	const char *kind = o->key && !known->key ? "key" :
			   o->path && !known->file ? "program" : NULL;

	if (kind)
		return fail(RC_USAGE, object,
			    "option %s of scheduler %s is a number, not a %s",
			    o->name, svc->scheduler, kind);
	if (known->count)
		return fail(RC_USAGE, object,
			    "%s of scheduler %s is a count: leave it out",
			    o->name, svc->scheduler);
	if (o->value < known->min || o->value > known->max)
		return fail(RC_USAGE, object,
			    "bad %s \"%u\": write a whole number from %u to %u (%s)",
			    o->name, o->value, known->min, known->max,
			    known->what);
	return o->path && !o->value ? program_open(o, object) : RC_OK;
}

static int check_options(struct service *svc, const struct sched_info *info)
{
	size_t i, kept = 0;
	unsigned int j;
	int rc;

	for (i = 0; i < svc->noptions; i++) {
		const struct sched_option *known = info->options;
		struct svc_option *o = &svc->options[i];

		for (j = 0; j < info->n && strcmp(known->name, o->name); j++)
			known++;
		if (j == info->n)
			return unknown_option(svc, o->name, info);
		rc = check_option(svc, o, known);
		if (rc)
			return rc;
		if (o->value != known->def)
			svc->options[kept++] = *o;
	}
	svc->noptions = kept;
	return RC_OK;
}

/* Keeps the last answer: a restored file names a scheduler many times. */
static int ask(const char *name, const struct sched_info **info)
{
	static struct sched_info last;
	int err = 0;

	if (strcmp(last.name, name))
		err = kern_scheduler(name, &last);
	if (err)
		last.name[0] = '\0';
	*info = &last;
	return err;
}

int scheduler_settle(struct service *svc, enum foreign_flags foreign)
{
	uint32_t flags = svc->flags & SCHED_FLAGS, wrong;
	const struct sched_info *info;
	const char *object;
	int err, rc;

	if (!flags && !svc->noptions)
		return RC_OK;
	object = svc_text(&svc->id);
	err = ask(svc->scheduler, &info);
	if (err == -EOPNOTSUPP && !svc->noptions)
		return RC_OK;
	if (err == -EOPNOTSUPP) {
		rc = fail(RC_BACKEND, object,
			  "option %s: the schedulers of %s have no options",
			  svc->options[0].name, backend_name());
		hint_module();
		return rc;
	}
	if (err == -ENOENT)
		return scheduler_missing(object, svc->scheduler);
	if (err)
		return refuse(err, object, "reading the scheduler's options");
	wrong = flags & ~info->flags;
	if (wrong && foreign == FOREIGN_REFUSED)
		return wrong_flags(svc, wrong, info->flags);
	if (foreign == FOREIGN_DROPPED)
		svc->flags &= ~wrong;
	return check_options(svc, info);
}

// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl check`: reads a configuration file as apply does; no module is needed. */
#include <stdio.h>

#include "args.h"
#include "cmd.h"
#include "declare.h"
#include "err.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "source.h"

static int print_result(const struct source *s, const struct declaration *d)
{
	const struct service_list *list = &d->services;
	size_t i, servers = 0;
	json_t *doc;

	for (i = 0; i < list->n; i++)
		servers += list->v[i].nservers;
	if (opt.json) {
		doc = doc_new();
		json_object_set_new(doc, "check",
				    json_pack("{s:I, s:I}", "services",
					      (json_int_t)list->n, "servers",
					      (json_int_t)servers));
		return print_doc(doc);
	}
	if (!opt.quiet)
		printf("%s: good: %zu services, %zu servers\n", s->name,
		       list->n, servers);
	return RC_OK;
}

static int run(struct args *a)
{
	const char *file = arg_next(a);
	struct declaration d;
	struct source s;
	int rc = arg_end(a, "check");

	if (!rc && !file) {
		rc = fail(RC_USAGE, "check", "no file named");
		hint("try: ipvsctl check FILE, or - for standard input");
	}
	if (!rc)
		rc = source_read(file, DECLARE_BYTES, &s);
	if (rc)
		return rc;
	rc = declare_read(&s, &d);
	if (!rc)
		rc = print_result(&s, &d);
	declaration_free(&d);
	source_free(&s);
	return rc;
}

static const struct verb verbs[] = {
	{ "check", run, "FILE",
	  "look for mistakes in a configuration file; no module is needed", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_check = {
	"check", NULL, verbs, "look for mistakes in a configuration file", 1
};

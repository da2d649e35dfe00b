// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl check`: reads a file as apply does, or rules as restore does; no module is needed. */
#include <stdio.h>

#include "args.h"
#include "cmd.h"
#include "configfile.h"
#include "declare.h"
#include "err.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "rules.h"
#include "source.h"

static int print_result(const struct source *s, const struct service_list *list)
{
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

static int check_rules(const struct source *s)
{
	struct service_list list = { 0 };
	int rc = configfile_parse(s, &list);

	if (!rc)
		rc = print_result(s, &list);
	service_list_free(&list);
	return rc;
}

static int check_declaration(const struct source *s)
{
	struct declaration d;
	int rc = declare_read(s, &d);

	if (!rc)
		rc = print_result(s, &d.services);
	declaration_free(&d);
	return rc;
}

/* Rules may be as long as restore takes them. */
static int check(struct source *s)
{
	if (rules_are(s->text))
		return check_rules(s);
	return s->len > DECLARE_BYTES ? source_too_large(s, DECLARE_BYTES)
				      : check_declaration(s);
}

static int run(struct args *a)
{
	const char *file = arg_next(a);
	struct source s;
	int rc = arg_end(a, "check");

	if (!rc && !file) {
		rc = fail(RC_USAGE, "check", "no file named");
		hint("try: ipvsctl check FILE, or - for standard input");
	}
	if (!rc)
		rc = source_read(file, CONFIGFILE_BYTES, &s);
	if (rc)
		return rc;
	rc = check(&s);
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

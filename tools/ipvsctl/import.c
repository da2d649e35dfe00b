// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl import`: what restore reads, printed as a file for apply. No module is asked. */
#include <stdio.h>
#include <unistd.h>

#include "args.h"
#include "cmd.h"
#include "configfile.h"
#include "err.h"
#include "model.h"
#include "opt.h"
#include "save.h"
#include "source.h"

/* A key is named by its file, and is not copied. */
static int name_keys(struct service *svc)
{
	int rc = RC_OK;
	size_t i;

	for (i = 0; i < svc->noptions && !rc; i++) {
		struct svc_option *o = &svc->options[i];

		if (!o->key)
			continue;
		if (!o->file) {
			rc = fail(RC_USAGE, svc_text(&svc->id),
				  "a key that is written as digits is not copied");
			hint("try: put the digits into a file, and name it: option key ./FILE");
		}
		o->path = o->file;
		o->key = NULL;
		o->value = 0;
	}
	return rc;
}

/* The JSON of save may have servers that drain. */
static void note_drains(const struct service_list *list)
{
	size_t i, j, n = 0;

	for (i = 0; i < list->n; i++)
		for (j = 0; j < list->v[i].nservers; j++)
			n += list->v[i].servers[j].drain.known;
	if (n)
		note("ipvsctl: %zu servers drain: the file has their weight 0 only",
		     n);
}

static int import(struct args *a)
{
	const char *file = arg_next(a);
	struct service_list list = { 0 };
	int rc = arg_end(a, "import");
	struct source s = { 0 };
	size_t i;

	if (!rc && !file && isatty(STDIN_FILENO))
		note("reading rules from the terminal; Ctrl-D ends it");
	if (!rc)
		rc = configfile_read(file ? file : "-", &s, &list);
	for (i = 0; i < list.n && !rc; i++)
		rc = name_keys(&list.v[i]);
	if (!rc)
		note_drains(&list);
	if (!rc)
		rc = save_list(&list, "import", "yaml");
	service_list_free(&list);
	source_free(&s);
	return rc;
}

static const struct verb verbs[] = {
	{ "import", import, "[FILE]",
	  "print rules of ipvsadm as a file that apply can read; no module is needed",
	  OPT_FORMAT },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_import = {
	"import", NULL, verbs, "turn rules of ipvsadm into a file for apply", NOUN_SINGLE
};

// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl save`: the configuration as a file, either the rules that ipvsadm
 * reads (what `ipvsadm -Sn` writes, in its order), JSON, or the YAML of apply.
 */
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "err.h"
#include "filter.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "outfile.h"
#include "rules_print.h"
#include "save.h"
#include "view.h"
#include "yaml.h"

struct listing {
	const struct service_list *list;
	int (*print)(const struct service_list *list);
};

static int print_config_json(const struct service_list *list)
{
	json_t *doc = doc_new(), *services = json_array();
	size_t i;

	for (i = 0; i < list->n; i++)
		json_array_append_new(services,
				      service_json(&list->v[i], JSON_CONFIG));
	json_object_set_new(doc, "services", services);
	return print_doc(doc);
}

static int print_list(void *arg)
{
	const struct listing *l = arg;

	return l->print(l->list);
}

static int (*const printers[])(const struct service_list *list) = {
	rules_print, print_config_json, yaml_print
};

/* The index of the format, or -1 and the exit code in *rc. */
static int which_format(const char *verb, const char *usual, int *rc)
{
	static const char *const known[] = { "ipvsadm", "json", "yaml", NULL };
	const char *format = opt.format ? opt.format : opt.json ? "json" : usual;
	int i;

	for (i = 0; known[i] && strcmp(format, known[i]); i++)
		;
	if (known[i])
		return i;
	*rc = arg_unknown(verb, "format", format, known);
	return -1;
}

int save_list(const struct service_list *list, const char *verb,
	      const char *usual)
{
	struct listing l = { .list = list };
	int rc, i = which_format(verb, usual, &rc);

	if (i < 0)
		return rc;
	l.print = printers[i];
	return outfile_write(opt.columns, print_list, &l);
}

int save_as(struct args *a, const char *verb, const char *usual)
{
	struct service_list list = { 0 };
	struct filter f = { .config = true };
	int rc = arg_end(a, verb);

	if (rc || which_format(verb, usual, &rc) < 0)
		return rc;
	rc = filter_read(&f, &list);
	if (!rc)
		rc = save_list(&list, verb, usual);
	service_list_free(&list);
	return rc;
}

static int save(struct args *a)
{
	return save_as(a, "save", "ipvsadm");
}

static const struct verb verbs[] = {
	{ "save", save, "",
	  "print the configuration so that restore (or ipvsadm -R) can read it",
	  OPT_FORMAT },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_save = {
	"save", NULL, verbs, "print the configuration for restore", NOUN_SINGLE
};

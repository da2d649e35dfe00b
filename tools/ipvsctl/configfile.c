// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "config.h"
#include "configfile.h"
#include "declare.h"
#include "err.h"
#include "model.h"
#include "rules.h"
#include "source.h"

/* The file of apply: only its services. */
static int read_yaml(const struct source *s, struct service_list *list)
{
	struct declaration d;
	int rc = declare_read(s, &d);

	if (!rc) {
		*list = d.services;
		memset(&d.services, 0, sizeof(d.services));
	}
	declaration_free(&d);
	return rc;
}

int configfile_parse(const struct source *s, struct service_list *list)
{
	if (strlen(s->text) != s->len)
		return fail(RC_USAGE, NULL, "%s is not a text file", s->name);
	if (s->text[strspn(s->text, " \t\r\n")] == '{')
		return config_read(s->name, s->text, s->len, list);
	if (declare_is_yaml(s->text))
		return read_yaml(s, list);
	return rules_read(s->name, s->text, list);
}

int configfile_read(const char *file, struct source *s, struct service_list *list)
{
	int rc = source_read(file, CONFIGFILE_BYTES, s);

	if (!rc)
		rc = configfile_parse(s, list);
	if (!rc && !list->n)
		rc = fail(RC_USAGE, NULL, "%s names no service", s->name);
	return rc;
}

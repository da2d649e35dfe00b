// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opt.h"
#include "out.h"
#include "report.h"

/* A server that is away may be a server of thousands of services. */
enum { ALIKE_MAX = 10 };

static const char *const severities[] = {
	[SEVERITY_ERROR] = "error",
	[SEVERITY_WARNING] = "warning",
	[SEVERITY_NOTE] = "note",
};

static void end_check(struct report *r)
{
	size_t more = r->alike > ALIKE_MAX ? r->alike - ALIKE_MAX : 0;
	enum severity worst;

	r->alike = 0;
	if (!more)
		return;
	worst = r->v[r->n - 1].severity;
	report_add(r, worst, NULL, "%zu more findings of this kind", more);
	r->alike = 0;
}

void report_begin(struct report *r, const char *name)
{
	end_check(r);
	r->check = name;
	r->checks++;
}

static char *text_of(const char *fmt, va_list ap)
{
	char *text;

	return vasprintf(&text, fmt, ap) < 0 ? NULL : text;
}

void report_add(struct report *r, enum severity how, const char *object,
		const char *fmt, ...)
{
	struct finding *more;
	va_list ap;

	if (r->alike++ >= ALIKE_MAX)
		return;
	more = reallocarray(r->v, r->n + 1, sizeof(*more));
	if (!more)
		return;
	r->v = more;
	more = &r->v[r->n++];
	*more = (struct finding){ .check = r->check, .severity = how };
	more->object = object ? strdup(object) : NULL;
	va_start(ap, fmt);
	more->text = text_of(fmt, ap);
	va_end(ap);
}

void report_cure(struct report *r, const char *fmt, ...)
{
	va_list ap;

	if (!r->n || r->alike > ALIKE_MAX || r->v[r->n - 1].cure)
		return;
	va_start(ap, fmt);
	r->v[r->n - 1].cure = text_of(fmt, ap);
	va_end(ap);
}

void report_unknown(struct report *r, const char *fmt, ...)
{
	struct unknown *more;
	va_list ap;

	more = reallocarray(r->unknown, r->nunknown + 1, sizeof(*more));
	if (!more)
		return;
	r->unknown = more;
	va_start(ap, fmt);
	more[r->nunknown++] = (struct unknown){ r->check, text_of(fmt, ap) };
	va_end(ap);
}

static size_t problems(const struct report *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->n; i++)
		n += r->v[i].severity != SEVERITY_NOTE;
	return n;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static json_t *finding_json(const struct finding *f)
{
	return json_pack("{s:s, s:s, s:s?, s:s, s:s?}", "check", f->check,
			 "severity", severities[f->severity], "object",
			 f->object, "message", or_empty(f->text), "try", f->cure);
}

static json_t *unknown_json(const struct unknown *u)
{
	return json_pack("{s:s, s:s}", "check", u->check, "why", or_empty(u->why));
}

static int print_json(const struct report *r)
{
	json_t *findings = json_array(), *unknown = json_array(), *doc = doc_new();
	json_t *found;
	size_t i;

	for (i = 0; i < r->n; i++)
		json_array_append_new(findings, finding_json(&r->v[i]));
	for (i = 0; i < r->nunknown; i++)
		json_array_append_new(unknown, unknown_json(&r->unknown[i]));
	found = json_pack("{s:I, s:o, s:o}", "checks", (json_int_t)r->checks,
			  "findings", findings, "not_checked", unknown);
	json_object_set_new(doc, "doctor", found);
	return print_doc(doc);
}

static int print_text(const struct report *r)
{
	size_t i, n = problems(r);

	for (i = 0; i < r->n; i++) {
		const struct finding *f = &r->v[i];

		printf("%s: %s: %s%s%s\n", severities[f->severity], f->check,
		       or_empty(f->object), f->object ? ": " : "",
		       or_empty(f->text));
		if (f->cure)
			printf("  try: %s\n", f->cure);
	}
	for (i = 0; i < r->nunknown; i++)
		printf("not checked: %s: %s\n", r->unknown[i].check,
		       or_empty(r->unknown[i].why));
	if (!n)
		printf("%zu checks, no problem found\n", r->checks);
	return RC_OK;
}

int report_print(struct report *r)
{
	size_t i, n;
	int rc;

	end_check(r);
	n = problems(r);
	rc = opt.json ? print_json(r) : print_text(r);
	for (i = 0; i < r->n; i++) {
		free(r->v[i].object);
		free(r->v[i].text);
		free(r->v[i].cure);
	}
	for (i = 0; i < r->nunknown; i++)
		free(r->unknown[i].why);
	free(r->v);
	free(r->unknown);
	return rc ? rc : n ? RC_DIFF : RC_OK;
}

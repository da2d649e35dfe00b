// SPDX-License-Identifier: GPL-2.0
/* One failure per run. It is kept until the end, so that its message and all
 * hints, also those added while undoing, are printed together.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "args.h"
#include "err.h"
#include "opt.h"

enum { HINTS_MAX = 8 };

static struct {
	enum exit_code code;
	int err;
	char *object;
	char *text;
	char *excerpt;			/* the line of the file, with a caret */
	unsigned int line, column;	/* in that file, or 0 */
	char *hints[HINTS_MAX];
	int nhints;
} failure;

int fail(enum exit_code code, const char *object, const char *fmt, ...)
{
	va_list ap;

	if (failure.text)
		return failure.code;
	failure.code = code;
	failure.object = object ? strdup(object) : NULL;
	va_start(ap, fmt);
	if (vasprintf(&failure.text, fmt, ap) < 0)
		failure.text = strdup("out of memory");
	va_end(ap);
	return code;
}

void hint(const char *fmt, ...)
{
	va_list ap;
	char *s;

	if (failure.nhints == HINTS_MAX)
		return;
	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) >= 0)
		failure.hints[failure.nhints++] = s;
	va_end(ap);
}

int fail_unreadable(const char *object, const char *what, const char *name)
{
	int err = errno;
	enum exit_code rc = fail(RC_USAGE, object, "cannot read %s%s: %s", what,
				 name, strerror(err));

	if (err == ENOENT || err == ENOTDIR)
		hint("try: the path of a file that exists");
	else if (err == EISDIR)
		hint("try: a file in this directory");
	else if (err == EACCES)
		hint("try: the command as a user that may read the file");
	return rc;
}

void fail_errno(int err)
{
	failure.err = err < 0 ? -err : err;
}

void fail_where(const char *file, unsigned int line)
{
	const char *object = failure.object ? failure.object : "";
	const char *colon = failure.object ? ": " : "";
	char *where;
	int n;

	if (line)
		n = asprintf(&where, "%s:%u%s%s", file, line, colon, object);
	else
		n = asprintf(&where, "%s%s%s", file, colon, object);
	if (n < 0)
		return;
	free(failure.object);
	failure.object = where;
}

/* A line may be long: about the wrong place is shown, on one row of a terminal. */
void fail_place(const char *file, const struct place *p)
{
	enum { WIDTH = 72, BEFORE = 40 };
	unsigned int skip = p->column > BEFORE + 20 ? p->column - BEFORE : 0;
	size_t i, from = 0, len;
	char *where;

	if (failure.excerpt || !failure.text)
		return;
	failure.line = p->line;
	failure.column = p->column;
	if (asprintf(&where, "%s:%u:%u", file, p->line, p->column) >= 0) {
		fail_where(where, 0);
		free(where);
	}
	if (!p->text)
		return;
	for (i = 0; i < p->len && skip; i++)
		if ((p->text[i] & 0xc0) != 0x80 && i)
			skip--, from = i;
	len = p->len - from < WIDTH ? p->len - from : WIDTH;
	while (len < p->len - from && (p->text[from + len] & 0xc0) == 0x80)
		len++;
	skip = p->column > BEFORE + 20 ? p->column - BEFORE : 0;
	if (asprintf(&failure.excerpt, "  %5u | %.*s\n        | %*s^\n",
		     p->line, (int)len, p->text + from,
		     (int)(p->column - skip) - 1, "") < 0)
		failure.excerpt = NULL;
	for (i = 0; failure.excerpt && failure.excerpt[i]; i++)
		if (((unsigned char)failure.excerpt[i] < ' ' &&
		     failure.excerpt[i] != '\n') ||
		    failure.excerpt[i] == 0x7f)
			failure.excerpt[i] = ' ';
}

int fail_code(enum exit_code code)
{
	failure.code = code;
	return code;
}

void note(const char *fmt, ...)
{
	va_list ap;

	if (opt.quiet)
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* For JSON: "tcp 192.0.2.10:80" in one word, tcp:192.0.2.10:80. */
static char *object_word(const char *object)
{
	static const char *const protos[] = { "tcp ", "udp ", "sctp " };
	char *word;
	size_t i;

	if (!strncmp(object, "fwmark ", 7)) {
		int six = !!strstr(object, " inet6");
		long mark = strtol(object + 7, NULL, 10);

		if (asprintf(&word, "fwm%s:%ld", six ? "6" : "", mark) < 0)
			return NULL;
		return word;
	}
	word = strdup(object);
	for (i = 0; word && i < ARRAY_SIZE(protos); i++)
		if (!strncmp(word, protos[i], strlen(protos[i])))
			*strchr(word, ' ') = ':';
	return word;
}

static void err_json(void)
{
	json_t *body = json_object(), *doc = json_pack("{s:o}", "error", body);
	char *word = failure.object ? object_word(failure.object) : NULL;
	char hints[1024] = "";
	int i;

	for (i = 0; i < failure.nhints; i++) {
		size_t used = strlen(hints);

		snprintf(hints + used, sizeof(hints) - used, "%s%s",
			 i ? "; " : "", failure.hints[i]);
	}
	json_object_set_new(body, "code", json_integer(failure.code));
	if (failure.err)
		json_object_set_new(body, "errno",
				    json_string(strerrorname_np(failure.err)));
	if (word)
		json_object_set_new(body, "object", json_string(word));
	if (failure.line) {
		json_object_set_new(body, "line", json_integer(failure.line));
		json_object_set_new(body, "column",
				    json_integer(failure.column));
	}
	json_object_set_new(body, "message", json_string(failure.text));
	if (failure.nhints)
		json_object_set_new(body, "hint", json_string(hints));
	json_dumpf(doc, stderr, opt.pretty ? JSON_INDENT(2) : JSON_COMPACT);
	fputc('\n', stderr);
	json_decref(doc);
	free(word);
}

static void err_text(void)
{
	int i;

	fprintf(stderr, "ipvsctl: %s%s%s\n",
		failure.object ? failure.object : "",
		failure.object ? ": " : "", failure.text);
	fputs(failure.excerpt ? failure.excerpt : "", stderr);
	for (i = 0; i < failure.nhints; i++)
		fprintf(stderr, "  %s\n", failure.hints[i]);
}

void err_forget(void)
{
	free(failure.text);
	free(failure.object);
	free(failure.excerpt);
	while (failure.nhints)
		free(failure.hints[--failure.nhints]);
	failure.text = NULL;
	failure.object = NULL;
	failure.excerpt = NULL;
	failure.line = 0;
	failure.err = 0;
}

void err_flush(void)
{
	if (failure.text) {
		if (opt.json)
			err_json();
		else
			err_text();
	}
	err_forget();
}

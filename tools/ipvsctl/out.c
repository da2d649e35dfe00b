// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libsmartcols/libsmartcols.h>

#include "args.h"
#include "backend.h"
#include "opt.h"
#include "out.h"
#include "version.h"

enum { COLUMNS_MAX = 16 };

struct table {
	struct libscols_table *scols;
	int place[COLUMNS_MAX];		/* a column's index in @scols, or -1 */
};

json_t *envelope(void)
{
	return json_pack("{s:i, s:s, s:s}", "schema", IPVSCTL_SCHEMA,
			 "version", IPVSCTL_VERSION, "backend",
			 backend_name());
}

json_t *doc_new(void)
{
	return json_pack("{s:o}", "ipvsctl", envelope());
}

int print_value(json_t *value)
{
	size_t flags = opt.pretty ? JSON_INDENT(2) : JSON_COMPACT;
	int bad = json_dumpf(value, stdout, flags | JSON_ENCODE_ANY);

	json_decref(value);
	return bad ? fail(RC_REFUSED, NULL, "cannot write the JSON document")
		   : RC_OK;
}

int print_doc(json_t *doc)
{
	int rc = print_value(doc);

	putchar('\n');
	return rc;
}

static json_t *plan;

void plan_step(const char *verb, const char *what)
{
	if (!opt.json) {
		printf("would %s %s\n", verb, what);
		return;
	}
	if (!plan)
		plan = json_array();
	json_array_append_new(plan, json_sprintf("%s %s", verb, what));
}

json_t *plan_json(void)
{
	json_t *steps = plan ? plan : json_array();

	plan = NULL;
	return steps;
}

int out_finish(void)
{
	json_t *doc;

	if (plan) {
		doc = doc_new();
		json_object_set_new(doc, "plan", plan_json());
		print_doc(doc);
	}
	if (!fflush(stdout) && !ferror(stdout))
		return RC_OK;
	return fail(RC_REFUSED, NULL, "cannot write the output: %s",
		    strerror(errno));
}

static bool wants_color(void)
{
	const char *no = getenv("NO_COLOR");

	if (opt.color != COLOR_AUTO)
		return opt.color == COLOR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no && no[0]);
}

void out_diff(char sign, const char *indent, const char *text)
{
	const char *color = sign == '+' ? "\033[32m" : sign == '-' ?
			    "\033[31m" : sign == '~' ? "\033[33m" : "";
	bool on = color[0] && wants_color();

	printf("%s%c %s%s%s\n", on ? color : "", sign, indent, text,
	       on ? "\033[0m" : "");
}

static int add_column(struct table *t, const struct column *cols, size_t i)
{
	int flags = (cols[i].right ? SCOLS_FL_RIGHT : 0) |
		    (cols[i].tree ? SCOLS_FL_TREE : 0);
	int next;

	if (t->place[i] >= 0)
		return RC_OK;
	next = (int)scols_table_get_ncols(t->scols);
	if (!scols_table_new_column(t->scols, cols[i].head, 0, flags))
		return fail(RC_REFUSED, NULL, "out of memory");
	t->place[i] = next;
	return RC_OK;
}

static int add_named_columns(struct table *t, const struct column *cols,
			     size_t ncols)
{
	const char *known[COLUMNS_MAX + 1] = { NULL };
	char *list = strdup(opt.columns), *word, *save;
	int rc = RC_OK;
	size_t i;

	for (i = 0; i < ncols; i++)
		known[i] = cols[i].key;
	for (word = strtok_r(list, ",", &save); word && !rc;
	     word = strtok_r(NULL, ",", &save)) {
		for (i = 0; i < ncols && strcasecmp(word, cols[i].key); i++)
			;
		rc = i < ncols ? add_column(t, cols, i)
			       : arg_unknown(NULL, "column", word, known);
	}
	if (!rc && !scols_table_get_ncols(t->scols))
		rc = fail(RC_USAGE, NULL, "option --columns names no column");
	free(list);
	return rc;
}

static bool listed(const char *const *list, const char *word)
{
	for (; list && *list; list++)
		if (!strcmp(*list, word))
			return true;
	return false;
}

int table_new(struct table **out, const struct column *cols, size_t ncols,
	      const char *const *also)
{
	struct table *t = calloc(1, sizeof(*t));
	int rc = RC_OK;
	size_t i;

	*out = t;
	if (t)
		t->scols = scols_new_table();
	if (!t || !t->scols) {
		free(t);
		return fail(RC_REFUSED, NULL, "out of memory");
	}
	for (i = 0; i < ncols; i++)
		t->place[i] = -1;
	scols_table_enable_noheadings(t->scols, opt.no_header);
	scols_table_enable_colors(t->scols, wants_color());
	if (opt.columns)
		rc = add_named_columns(t, cols, ncols);
	for (i = 0; !opt.columns && i < ncols && !rc; i++)
		if (!cols[i].extra || listed(also, cols[i].key))
			rc = add_column(t, cols, i);
	if (rc) {
		scols_unref_table(t->scols);
		free(t);
		*out = NULL;
	}
	return rc;
}

struct row *table_row(struct table *t, struct row *parent)
{
	struct libscols_line *under = (struct libscols_line *)parent;

	return (struct row *)scols_table_new_line(t->scols, under);
}

void table_cell(struct table *t, struct row *row, size_t col, const char *fmt,
		...)
{
	va_list ap;
	char *text;

	if (!row || t->place[col] < 0)
		return;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	scols_line_refer_data((struct libscols_line *)row,
			      (size_t)t->place[col], text);
}

void table_color(struct table *t, struct row *row, size_t col,
		 enum cell_color color)
{
	static const char *const names[] = { "green", "yellow", "red" };
	struct libscols_cell *cell;

	if (!row || t->place[col] < 0)
		return;
	cell = scols_line_get_cell((struct libscols_line *)row,
				   (size_t)t->place[col]);
	if (cell)
		scols_cell_set_color(cell, names[color]);
}

void table_free(struct table *t)
{
	scols_unref_table(t->scols);
	free(t);
}

int table_print(struct table *t)
{
	int err = scols_print_table(t->scols);

	table_free(t);
	return err ? fail(RC_REFUSED, NULL, "cannot print the table") : RC_OK;
}

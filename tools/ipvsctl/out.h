/* SPDX-License-Identifier: GPL-2.0 */
/* Printing: one JSON document, or one table. */
#ifndef IPVSCTL_OUT_H
#define IPVSCTL_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "err.h"

/* A document with its envelope; print_doc() prints and frees it. */
json_t *doc_new(void);
int print_doc(json_t *doc);

/* Prints one value as JSON, indented with -p, and frees it. */
int print_value(json_t *value);

/* A step that a dry run leaves out: prints it, or with -j adds it to a list.
 * plan_json() hands that list over; otherwise out_finish() prints it.
 */
void plan_step(const char *verb, const char *what);
json_t *plan_json(void);

/* The object {"schema":...} of every document. */
json_t *envelope(void);

struct column {
	const char *key;	/* its name for -o */
	const char *head;
	bool right;		/* numbers */
	bool tree;
	bool extra;		/* only printed on request */
};

struct table;
struct row;

/* Fails if -o names an unknown column. Extra columns are printed if -o names
 * them or their keys are in @also (NULL-terminated, or NULL).
 */
int table_new(struct table **t, const struct column *cols, size_t ncols,
	      const char *const *also);
struct row *table_row(struct table *t, struct row *parent);
void table_cell(struct table *t, struct row *row, size_t col, const char *fmt,
		...) PRINTF_LIKE(4, 5);
enum cell_color { CELL_GOOD, CELL_WARN, CELL_BAD };
void table_color(struct table *t, struct row *row, size_t col,
		 enum cell_color color);
int table_print(struct table *t);	/* and frees it */
void table_free(struct table *t);

/* A line of a difference: @sign is '+', '-', '~' or ' '. */
void out_diff(char sign, const char *indent, const char *text);

/* Flushes stdout; fails if not everything could be written. */
int out_finish(void);

#endif

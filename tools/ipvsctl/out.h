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

/* The JSON text of one value on stdout, as -j or -p ask; frees it. */
int print_value(json_t *value);

/* A step that a dry run does not take: a line of text, or with -j an entry of
 * the list that plan_json() gives away and out_finish() otherwise prints.
 */
void plan_step(const char *verb, const char *what);
json_t *plan_json(void);

/* The envelope object {"schema":...} alone. */
json_t *envelope(void);

struct column {
	const char *key;	/* what -o calls it */
	const char *head;
	bool right;		/* numbers */
	bool tree;
	bool extra;		/* only printed when -o names it */
};

struct table;
struct row;

/* Fails if -o names a column there is not. The keys in @also (NULL-ended, or
 * NULL) are shown although they are extra.
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

/* Flushes stdout; fails if not everything could be written. */
int out_finish(void);

#endif

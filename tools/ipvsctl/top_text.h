/* SPDX-License-Identifier: GPL-2.0 */
/* The lines of `ipvsctl top`, as wide as the terminal. */
#ifndef IPVSCTL_TOP_TEXT_H
#define IPVSCTL_TOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct ranked;
struct top_data;

enum {
	TOP_LINE_BYTES = 2048,		/* of a line with its NUL */
	TOP_WIDTH_MAX = 500,
	TOP_HEAD_LINES = 3,
	TOP_COLUMNS = 9,
};

/* Which columns fit, and how wide they are. */
struct top_layout {
	int width;		/* of the terminal */
	int name;
	int bar;		/* 0: none */
	bool shown[TOP_COLUMNS];
	bool utf8;
};

/* Makes room for the names of rows @from to @from + @count - 1; the column of
 * names never gets narrower while the width stays, so that columns do not jump.
 */
void top_layout(struct top_layout *l, int width, const struct top_data *d,
		size_t from, size_t count);

/* Each writes a line without its end into @buf of TOP_LINE_BYTES, no wider than
 * the layout; line 0 to TOP_HEAD_LINES - 1 of the summary.
 */
void top_text_head(const struct top_layout *l, const struct top_data *d,
		   int line, char *buf);
void top_text_columns(const struct top_layout *l, const struct top_data *d,
		      char *buf);
void top_text_row(const struct top_layout *l, const struct top_data *d,
		  const struct ranked *row, char *buf);
/* Counter @i: its name, its value, and how fast it grows. */
void top_text_counter(const struct top_layout *l, const struct top_data *d,
		      size_t i, char *buf);

#endif

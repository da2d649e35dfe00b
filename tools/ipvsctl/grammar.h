/* SPDX-License-Identifier: GPL-2.0 */
/* Follows the grammar of a usage (see cmd.h), to tell what may come next. */
#ifndef IPVSCTL_GRAMMAR_H
#define IPVSCTL_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>

/* Longer lines have no next word. */
enum { GRAMMAR_WORDS_MAX = 255 };

struct grammar_line {
	char *const *word;
	int count;		/* at most GRAMMAR_WORDS_MAX */
	/* @name, not NUL-terminated, may come after these words: a word as it is written,
	 * or, in upper case, one that stands for others. Called again and again.
	 */
	void (*next)(const char *name, size_t len, void *arg);
	void *arg;
};

void grammar_next(const char *usage, const struct grammar_line *line);

/* Is @name one that stands for others? */
bool grammar_is_name(const char *name, size_t len);

#endif

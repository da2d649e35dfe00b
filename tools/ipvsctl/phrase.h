/* SPDX-License-Identifier: GPL-2.0 */
/* Values of a document as the words of a command line, which the parsers of
 * options read.
 */
#ifndef IPVSCTL_PHRASE_H
#define IPVSCTL_PHRASE_H

#include <stdbool.h>
#include <stddef.h>

#include "args.h"

struct node;
struct tree;

enum { PHRASE_WORDS = 64, PHRASE_BYTES = 1024 };

struct phrase {
	char text[PHRASE_BYTES];
	size_t used;
	char *word[PHRASE_WORDS];
	struct args args;
};

void phrase_begin(struct phrase *p);
/* False if it is too long. */
bool phrase_word(struct phrase *p, const char *word);

/* phrase_begin(), @first unless it is NULL, and the words of @node, which must be a
 * plain value; returns an exit code.
 */
int phrase_node(struct phrase *p, const struct tree *t, const char *first,
		const struct node *node);

/* Is @key, with - or _ between its words, the key @name? */
bool key_is(const struct node *value, const char *name);
/* The member @name of @map, or NULL. */
struct node *key_find(const struct node *map, const char *name);
/* Fails, with its place, for a key that is none of the NULL-terminated @known. */
int keys_check(const struct tree *t, const struct node *map, const char *what,
	       const char *const *known);

bool node_is_null(const struct node *node);
/* Fails, with its place, if the text of @node is null or blank. @name: its key, or NULL. */
int node_says(const struct tree *t, const struct node *node, const char *name);
/* true, false, and YAML's other words for them. */
int node_bool(const struct tree *t, const struct node *node, bool *out);
/* Fails, with its place, unless @node is of this kind, such as "a list". */
int node_expect(const struct tree *t, const struct node *node, int kind,
		const char *name);

#endif

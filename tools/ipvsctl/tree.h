/* SPDX-License-Identifier: GPL-2.0 */
/* A YAML or JSON document as a tree whose nodes know their place in the file. */
#ifndef IPVSCTL_TREE_H
#define IPVSCTL_TREE_H

#include <stdbool.h>
#include <stddef.h>

struct source;

enum node_kind { NODE_MAP, NODE_LIST, NODE_TEXT };

struct node {
	enum node_kind kind;
	bool quoted;
	unsigned int line, column;	/* from 1 */
	char *text;			/* of a NODE_TEXT */
	struct node *first, *next;	/* members of a map or list */
	struct node *key;		/* of a map's member */
};

struct tree {
	const struct source *source;
	struct node *root;
	struct tree_chunk *chunks;	/* the memory of the nodes and their text */
	size_t n;			/* nodes */
};

/* Parses one document; fails, with the place, for anything that is not a plain
 * tree: anchors, aliases, tags, merge keys, a key that is named twice, more than
 * TREE_DEPTH levels. Returns an exit code; tree_free() in any case.
 */
int tree_parse(const struct source *s, struct tree *t);
void tree_free(struct tree *t);

/* Adds the place to the recorded failure, with the line and a caret. */
void tree_place(const struct source *s, unsigned int line, unsigned int column);

/* Adds the place of @node to the recorded failure; returns @rc. */
int tree_fail(const struct tree *t, const struct node *node, int rc);

enum { TREE_DEPTH = 6 };

#endif

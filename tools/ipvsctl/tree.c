// SPDX-License-Identifier: GPL-2.0
/* libyaml's events become a tree. JSON is read as the part of YAML that it is.
 *
 * A configuration needs no anchors, tags and merge keys. They are refused: a few
 * lines with anchors can stand for gigabytes.
 */
#define _GNU_SOURCE
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "err.h"
#include "source.h"
#include "tree.h"

enum { NODES_MAX = 1 << 20, KEYS_MAX = 64, CHUNK = 1 << 16, ALIGN = 8 };

/* A tree of 10,000 services has 100,000 nodes, and goes as a whole. */
struct tree_chunk {
	struct tree_chunk *next;
	size_t used, size;
	struct node data[];
};

/* The place after a line break as libyaml counts lines, or NULL. */
static const char *after_break(const char *p, const char *end)
{
	const char *here;

	for (here = p; here < end; here++) {
		if (*here == '\n')
			return here + 1;
		if (*here == '\r')
			return here + (here + 1 < end && here[1] == '\n' ? 2 : 1);
		if (end - here > 1 && !memcmp(here, "\xc2\x85", 2))
			return here + 2;
		if (end - here > 2 && (!memcmp(here, "\xe2\x80\xa8", 3) ||
				       !memcmp(here, "\xe2\x80\xa9", 3)))
			return here + 3;
	}
	return NULL;
}

static bool is_utf8(const char *p, size_t len)
{
	const unsigned char *c = (const unsigned char *)p;
	size_t i, more;

	for (i = 0; i < len; i++) {
		more = c[i] < 0x80 ? 0 : c[i] < 0xc2 ? 4 : c[i] < 0xe0 ? 1
			: c[i] < 0xf0 ? 2 : c[i] < 0xf5 ? 3 : 4;
		if (more == 4 || i + more >= len)
			return false;
		/* No control characters: a terminal could obey them. */
		if (c[i] == 0xc2 && c[i + 1] < 0xa0)
			return false;
		while (more--)
			if ((c[++i] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

/* A line that may have a key in it is not shown. */
void tree_place(const struct source *s, unsigned int line, unsigned int column)
{
	const char *end = s->text + s->len, *p = s->text, *next;
	struct place place = { .line = line, .column = column };

	while (--line && p)
		p = after_break(p, end);
	if (p) {
		next = after_break(p, end);
		place.text = p;
		place.len = (size_t)((next ? next : end) - p);
		while (place.len && (p[place.len - 1] == '\n' ||
				     p[place.len - 1] == '\r'))
			place.len--;
		if (memmem(p, place.len, "key", 3) || !is_utf8(p, place.len))
			place.text = NULL;
	}
	fail_place(s->name, &place);
}

int tree_fail(const struct tree *t, const struct node *node, int rc)
{
	if (rc)
		tree_place(t->source, node->line, node->column);
	return rc;
}

static int fail_mark(const struct tree *t, const yaml_mark_t *mark, int rc)
{
	tree_place(t->source, (unsigned int)mark->line + 1,
		   (unsigned int)mark->column + 1);
	return rc;
}

/* ---- what libyaml refuses ---- */

static bool at_tab(const struct source *s, const yaml_mark_t *mark)
{
	const char *end = s->text + s->len, *p = s->text;
	size_t line = mark->line;

	while (line-- && p)
		p = after_break(p, end);
	return p && p + strspn(p, " ") < end && p[strspn(p, " ")] == '\t';
}

static int fail_parser(const struct tree *t, const yaml_parser_t *parser)
{
	const char *problem = parser->problem ? parser->problem : "unknown";
	yaml_mark_t mark = parser->problem_mark;
	size_t i;

	if (parser->error == YAML_MEMORY_ERROR)
		return fail(RC_REFUSED, NULL, "out of memory");
	if (parser->error == YAML_READER_ERROR) {
		mark = (yaml_mark_t){ .index = 0 };
		for (i = 0; i < parser->problem_offset &&
		     i < t->source->len; i++) {
			mark.column++;
			if (t->source->text[i] == '\n')
				mark = (yaml_mark_t){ .line = mark.line + 1 };
		}
		return fail_mark(t, &mark, fail(RC_USAGE, NULL,
			"not a text file in UTF-8: %s", problem));
	}
	if (at_tab(t->source, &mark))
		return fail_mark(t, &mark, fail(RC_USAGE, NULL,
			"a tab begins this line: write blanks"));
	if (parser->context)
		return fail_mark(t, &mark, fail(RC_USAGE, NULL,
			"not YAML or JSON: %s (%s, line %zu)", problem,
			parser->context, parser->context_mark.line + 1));
	return fail_mark(t, &mark, fail(RC_USAGE, NULL,
					"not YAML or JSON: %s", problem));
}

/* ---- building ---- */

/* Zeroed; aligned for a node. */
static void *take_memory(struct tree *t, size_t size)
{
	struct tree_chunk *c = t->chunks;
	void *memory;

	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!c || c->size - c->used < size) {
		c = calloc(1, sizeof(*c) + (size > CHUNK ? size : CHUNK));
		if (!c)
			err(3, "out of memory");
		c->size = size > CHUNK ? size : CHUNK;
		c->next = t->chunks;
		t->chunks = c;
	}
	memory = (char *)c->data + c->used;
	c->used += size;
	return memory;
}

static struct node *node_new(struct tree *t, enum node_kind kind,
			     const yaml_mark_t *mark)
{
	struct node *node = take_memory(t, sizeof(*node));

	t->n++;
	node->kind = kind;
	node->line = (unsigned int)mark->line + 1;
	node->column = (unsigned int)mark->column + 1;
	return node;
}

/* A map or list that is not complete. */
struct level {
	struct node *node, *last, *key;
};

struct builder {
	struct tree *tree;
	struct level level[TREE_DEPTH];
	unsigned int depth;
};

static int check_key(const struct builder *b, const struct level *l,
		     struct node *key)
{
	const struct node *old;
	unsigned int n = 0;
	int rc = RC_OK;

	if (key->kind != NODE_TEXT)
		rc = fail(RC_USAGE, NULL, "a key must be a word");
	else if (!strcmp(key->text, "<<"))
		rc = fail(RC_USAGE, NULL, "merge keys (<<) are not allowed");
	for (old = l->node->first; !rc && old; old = old->next) {
		if (!strcmp(old->key->text, key->text))
			rc = fail(RC_USAGE, NULL,
				  "key \"%s\" is named twice: first in line %u",
				  key->text, old->key->line);
		else if (++n == KEYS_MAX)
			rc = fail(RC_USAGE, NULL, "more than %d keys",
				  KEYS_MAX);
	}
	return tree_fail(b->tree, key, rc);
}

/* Puts @node where it belongs; a map's keys come before their values. */
static int attach(struct builder *b, struct node *node)
{
	struct level *l = b->depth ? &b->level[b->depth - 1] : NULL;

	if (!l) {
		b->tree->root = node;
		return RC_OK;
	}
	if (l->node->kind == NODE_MAP && !l->key) {
		l->key = node;
		return check_key(b, l, node);
	}
	node->key = l->key;
	l->key = NULL;
	if (l->last)
		l->last->next = node;
	else
		l->node->first = node;
	l->last = node;
	return RC_OK;
}

static int refuse_extras(const struct builder *b, const yaml_event_t *e)
{
	const unsigned char *anchor = NULL, *tag = NULL;
	const char *what = NULL;

	if (e->type == YAML_SCALAR_EVENT) {
		anchor = e->data.scalar.anchor;
		tag = e->data.scalar.tag;
	} else if (e->type == YAML_SEQUENCE_START_EVENT) {
		anchor = e->data.sequence_start.anchor;
		tag = e->data.sequence_start.tag;
	} else if (e->type == YAML_MAPPING_START_EVENT) {
		anchor = e->data.mapping_start.anchor;
		tag = e->data.mapping_start.tag;
	}
	if (anchor)
		what = "anchors (&name) are not allowed";
	else if (tag)
		what = "tags (!name) are not allowed";
	else if (e->type == YAML_ALIAS_EVENT)
		what = "aliases (*name) are not allowed";
	else if (b->tree->n >= NODES_MAX)
		what = "more than 1048576 values";
	else if (e->type == YAML_DOCUMENT_START_EVENT && b->tree->root)
		what = "a second document (---) begins here";
	if (!what)
		return RC_OK;
	return fail_mark(b->tree, &e->start_mark,
			 fail(RC_USAGE, NULL, "%s", what));
}

static int begin(struct builder *b, enum node_kind kind, const yaml_event_t *e)
{
	struct node *node;
	int rc;

	if (b->depth == TREE_DEPTH)
		return fail_mark(b->tree, &e->start_mark, fail(RC_USAGE, NULL,
			"more than %d levels", TREE_DEPTH));
	node = node_new(b->tree, kind, &e->start_mark);
	rc = attach(b, node);
	b->level[b->depth++] = (struct level){ .node = node };
	return rc;
}

static int scalar(struct builder *b, const yaml_event_t *e)
{
	struct node *node = node_new(b->tree, NODE_TEXT, &e->start_mark);
	const char *text = (const char *)e->data.scalar.value;

	node->text = strcpy(take_memory(b->tree, strlen(text) + 1), text);
	node->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	if (strlen(text) != e->data.scalar.length)
		return tree_fail(b->tree, node, fail(RC_USAGE, NULL,
			"a NUL character is in this value"));
	return attach(b, node);
}

static int take(struct builder *b, const yaml_event_t *e)
{
	int rc = refuse_extras(b, e);

	if (rc)
		return rc;
	switch (e->type) {
	case YAML_MAPPING_START_EVENT:
		return begin(b, NODE_MAP, e);
	case YAML_SEQUENCE_START_EVENT:
		return begin(b, NODE_LIST, e);
	case YAML_SCALAR_EVENT:
		return scalar(b, e);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		b->depth--;
		return RC_OK;
	default:
		return RC_OK;
	}
}

static int check_text(const struct tree *t)
{
	const struct source *s = t->source;
	const char *nul = memchr(s->text, '\0', s->len), *p, *next;
	yaml_mark_t mark = { .line = 0 };

	if (!nul)
		return RC_OK;
	for (p = s->text; (next = after_break(p, nul)); p = next)
		mark.line++;
	mark.column = (size_t)(nul - p);
	return fail_mark(t, &mark, fail(RC_USAGE, NULL,
		"not a text file: a NUL byte is here"));
}

int tree_parse(const struct source *s, struct tree *t)
{
	struct builder b = { .tree = t };
	yaml_event_type_t type;
	yaml_parser_t parser;
	yaml_event_t event;
	int rc;

	*t = (struct tree){ .source = s };
	rc = check_text(t);
	if (rc)
		return rc;
	if (!yaml_parser_initialize(&parser))
		return fail(RC_REFUSED, NULL, "out of memory");
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)s->text,
				     s->len);
	do {
		if (!yaml_parser_parse(&parser, &event)) {
			rc = fail_parser(t, &parser);
			break;
		}
		type = event.type;
		rc = take(&b, &event);
		yaml_event_delete(&event);
	} while (!rc && type != YAML_STREAM_END_EVENT);
	yaml_parser_delete(&parser);
	if (!rc && !t->root)
		rc = fail(RC_USAGE, s->name, "the file is empty");
	return rc;
}

void tree_free(struct tree *t)
{
	struct tree_chunk *c;

	/* There may be keys in it. */
	while ((c = t->chunks)) {
		t->chunks = c->next;
		explicit_bzero(c->data, c->used);
		free(c);
	}
	*t = (struct tree){ .source = NULL };
}

// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "args.h"
#include "err.h"
#include "phrase.h"
#include "suggest.h"
#include "tree.h"

void phrase_begin(struct phrase *p)
{
	p->used = 0;
	p->args = (struct args){ .word = p->word };
}

static bool add(struct phrase *p, const char *word, size_t len)
{
	if (p->args.count == PHRASE_WORDS || p->used + len >= sizeof(p->text))
		return false;
	p->word[p->args.count++] = p->text + p->used;
	memcpy(p->text + p->used, word, len);
	p->used += len;
	p->text[p->used++] = '\0';
	return true;
}

bool phrase_word(struct phrase *p, const char *word)
{
	return add(p, word, strlen(word));
}

static bool phrase_words(struct phrase *p, const char *text)
{
	size_t len;

	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		len = strcspn(text, " ");
		if (!add(p, text, len))
			return false;
		text += len;
	}
	return true;
}

int node_says(const struct tree *t, const struct node *node, const char *name)
{
	if (!node_is_null(node) && node->text[strspn(node->text, " ")])
		return RC_OK;
	return tree_fail(t, node, name
		? fail(RC_USAGE, NULL, "\"%s\" needs a value", name)
		: fail(RC_USAGE, NULL, "a value is missing"));
}

int phrase_node(struct phrase *p, const struct tree *t, const char *first,
		const struct node *node)
{
	int rc = node_expect(t, node, NODE_TEXT, first ? first : "a name");

	phrase_begin(p);
	if (!rc)
		rc = node_says(t, node, first);
	if (rc)
		return rc;
	if ((first && !phrase_word(p, first)) || !phrase_words(p, node->text))
		return tree_fail(t, node, fail(RC_USAGE, NULL,
					       "the value is too long"));
	return RC_OK;
}

bool key_is(const struct node *value, const char *name)
{
	const char *key = value->key->text;

	for (; *key && *name; key++, name++)
		if (*key != *name && !(*key == '_' && *name == '-'))
			return false;
	return *key == *name;
}

struct node *key_find(const struct node *map, const char *name)
{
	struct node *value;

	for (value = map->first; value; value = value->next)
		if (key_is(value, name))
			return value;
	return NULL;
}

/* "max-conns" and "max_conns" are one key. */
static int named_twice(const struct tree *t, const struct node *map,
		       const char *name)
{
	const struct node *first = key_find(map, name), *value;

	for (value = first->next; value; value = value->next)
		if (key_is(value, name))
			return tree_fail(t, value->key, fail(RC_USAGE, NULL,
				"key \"%s\" is named twice: first in line %u",
				name, first->key->line));
	return RC_OK;
}

int keys_check(const struct tree *t, const struct node *map, const char *what,
	       const char *const *known)
{
	const struct node *value;
	int i, rc = node_expect(t, map, NODE_MAP, what);

	for (value = map->first; !rc && value; value = value->next) {
		for (i = 0; known[i] && !key_is(value, known[i]); i++)
			;
		rc = known[i] ? named_twice(t, map, known[i])
			      : tree_fail(t, value->key,
					  arg_unknown(NULL, "key",
						      value->key->text, known));
	}
	return rc;
}

bool node_is_null(const struct node *node)
{
	return node->kind == NODE_TEXT && !node->quoted &&
	       (!node->text[0] || !strcmp(node->text, "~") ||
		!strcmp(node->text, "null"));
}

int node_bool(const struct tree *t, const struct node *node, bool *out)
{
	static const char *const words[] = {
		"false", "true", "no", "yes", "off", "on", NULL
	};
	int i;

	for (i = 0; node->kind == NODE_TEXT && words[i]; i++)
		if (!strcmp(node->text, words[i])) {
			*out = i & 1;
			return RC_OK;
		}
	return tree_fail(t, node, fail(RC_USAGE, NULL,
		"\"%s\" must be true or false", node->key->text));
}

int node_expect(const struct tree *t, const struct node *node, int kind,
		const char *name)
{
	static const char *const kinds[] = {
		[NODE_MAP] = "keys and values", [NODE_LIST] = "a list",
		[NODE_TEXT] = "one value",
	};

	if ((int)node->kind == kind)
		return RC_OK;
	return tree_fail(t, node, fail(RC_USAGE, NULL,
		"%s must be %s, not %s", name, kinds[kind],
		kinds[node->kind]));
}

// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "commands.h"
#include "err.h"
#include "help.h"
#include "opt.h"
#include "options.h"
#include "wire.h"

enum { NOUNS_MAX = 40, VERBS_MAX = 24 };

static const struct noun *const *nouns;

static const char *const verb_aliases[][2] = {
	{ "ls", "show" }, { "list", "show" }, { "show", "list" },
	{ "del", "delete" }, { "rm", "delete" }, { "set", "replace" },
};

void commands_use(const struct noun *const *table)
{
	nouns = table;
}

static const struct noun *noun_find(const char *word)
{
	int i;

	for (i = 0; nouns[i]; i++)
		if (!strcmp(word, nouns[i]->name) ||
		    (nouns[i]->alias && !strcmp(word, nouns[i]->alias)))
			return nouns[i];
	return NULL;
}

static const struct verb *find_exact(const struct noun *noun, const char *word)
{
	const struct verb *v;

	for (v = noun->verbs; v->name; v++)
		if (!strcmp(word, v->name))
			return v;
	return NULL;
}

/* A noun's own verbs win over the aliases. */
static const struct verb *verb_find(const struct noun *noun, const char *word)
{
	const struct verb *v = find_exact(noun, word);
	size_t i;

	for (i = 0; !v && i < ARRAY_SIZE(verb_aliases); i++)
		if (!strcmp(word, verb_aliases[i][0]))
			v = find_exact(noun, verb_aliases[i][1]);
	return v;
}

static int unknown_noun(const char *word)
{
	const char *known[NOUNS_MAX] = { NULL };
	int i;

	for (i = 0; nouns[i] && i < NOUNS_MAX - 2; i++)
		known[i] = nouns[i]->name;
	known[i] = "help";
	return arg_unknown(NULL, "object", word, known);
}

static int unknown_verb(const struct noun *noun, const char *word)
{
	const char *known[VERBS_MAX] = { NULL };
	int i;

	for (i = 0; noun->verbs[i].name && i < VERBS_MAX - 1; i++)
		known[i] = noun->verbs[i].name;
	return arg_unknown(noun->name, "verb", word, known);
}

int commands_help(struct args *words)
{
	const char *word = arg_next(words);
	const struct noun *noun;
	const struct verb *v;

	if (!word || !strcmp(word, "help")) {
		help_all(nouns);
		return RC_OK;
	}
	noun = noun_find(word);
	if (!noun)
		return unknown_noun(word);
	word = noun->kind == NOUN_SINGLE ? NULL : arg_next(words);
	v = word ? verb_find(noun, word) : NULL;
	/* With -h after a half-written line, an unknown verb is no error. */
	if (word && !v && !opt.help)
		return unknown_verb(noun, word);
	help_noun(noun, v ? v->name : NULL);
	return RC_OK;
}

/* Without a verb the noun's first one runs; it only shows something. */
static int run_noun(const struct noun *noun, struct args *a)
{
	const char *word = arg_peek(a);
	const struct verb *v = noun->verbs;
	char name[64];
	int rc;

	if (noun->kind != NOUN_SINGLE && word) {
		v = verb_find(noun, word);
		if (v)
			arg_next(a);
		else if (noun->kind == NOUN_FIRST)
			v = noun->verbs;
		else
			return unknown_verb(noun, word);
	}
	snprintf(name, sizeof(name), "%s%s%s", noun->name,
		 noun->kind == NOUN_SINGLE ? "" : " ",
		 noun->kind == NOUN_SINGLE ? "" : v->name);
	rc = options_allow(name, v->options);
	if (!rc)
		rc = wire_enter_netns();
	return rc ? rc : v->run(a);
}

int commands_run(struct args *words)
{
	const struct noun *noun = nouns[0];
	const char *word = arg_next(words);

	if (word && !strcmp(word, "help"))
		return commands_help(words);
	if (word)
		noun = noun_find(word);
	return noun ? run_noun(noun, words) : unknown_noun(word);
}

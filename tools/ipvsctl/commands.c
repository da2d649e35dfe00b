// SPDX-License-Identifier: GPL-2.0
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "commands.h"
#include "err.h"
#include "help.h"
#include "opt.h"
#include "options.h"
#include "suggest.h"
#include "wire.h"
#include "words.h"

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

const struct noun *commands_noun(const char *word)
{
	int i;

	for (i = 0; nouns[i]; i++)
		if (!strcmp(word, nouns[i]->name) ||
		    (nouns[i]->alias && !strcmp(word, nouns[i]->alias)))
			return nouns[i];
	return NULL;
}

/* Words that are complete without their object. */
static const char *const alone[][2] = {
	{ "ls", "show" }, { "list", "show" }, { "flush", "service" },
};

static const struct verb *find_exact(const struct noun *noun, const char *word)
{
	const struct verb *v;

	for (v = noun->verbs; v->name; v++)
		if (!strcmp(word, v->name))
			return v;
	return NULL;
}

/* A noun's own verbs win over the aliases. */
const struct verb *commands_verb(const struct noun *noun, const char *word)
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
	int i, rc;

	for (i = 0; nouns[i] && i < NOUNS_MAX - 2; i++)
		known[i] = nouns[i]->name;
	known[i] = "help";
	rc = arg_unknown(NULL, "object", word, known);
	for (i = 0; nouns[i] && !suggest(word, known); i++) {
		if (!commands_verb(nouns[i], word) || !suggest_may(word))
			continue;
		hint("write the object before it: ipvsctl %s %s",
		     nouns[i]->name, word);
		break;
	}
	return rc;
}

static int unknown_verb(const struct noun *noun, const char *word)
{
	const char *known[VERBS_MAX] = { NULL };
	const struct verb *v;
	int i, rc;

	/* It may be the value of an option that does not exist. */
	if (options_unknown())
		return options_allow(noun->name, noun->verbs->usage, 0);
	for (i = 0; noun->verbs[i].name && i < VERBS_MAX - 1; i++)
		known[i] = noun->verbs[i].name;
	rc = arg_unknown(noun->name, "verb", word, known);
	if (suggest(word, known))
		return rc;
	for (v = noun->verbs; v->name; v++)
		if (usage_has(v->usage, word)) {
			hint("write the verb before it: ipvsctl %s %s",
			     noun->name, v->name);
			return rc;
		}
	return rc;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "help") || !strcmp(word, "options") ||
	       !strcmp(word, "usage");
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
	noun = commands_noun(word);
	if (!noun)
		return unknown_noun(word);
	word = noun->kind == NOUN_SINGLE ? NULL : arg_next(words);
	v = word ? commands_verb(noun, word) : NULL;
	/* With -h after a half-written line, an unknown verb is no error; nor is
	 * "help service options".
	 */
	if (word && !v && !opt.help && !is_help(word))
		return unknown_verb(noun, word);
	help_noun(noun, v ? v->name : NULL);
	return RC_OK;
}

/* "server help", "service add help"; but a file may have that name. */
static bool wants_help(const struct args *a, const char *usage)
{
	const char *word = arg_peek(a);

	return word && !strcmp(word, "help") && !usage_has(usage, "FILE");
}

/* Without a verb the noun's first one runs; it only shows something. */
static int take_verb(const struct noun *noun, struct args *a,
		     const struct verb **verb)
{
	const char *word = arg_peek(a);

	*verb = noun->verbs;
	if (noun->kind == NOUN_SINGLE || !word || !strcmp(word, "help"))
		return RC_OK;
	*verb = commands_verb(noun, word);
	if (*verb)
		arg_next(a);
	else if (noun->kind == NOUN_FIRST)
		*verb = noun->verbs;
	else
		return unknown_verb(noun, word);
	return RC_OK;
}

static int run_noun(const struct noun *noun, struct args *a)
{
	bool single = noun->kind == NOUN_SINGLE;
	int rc, start = a->pos;
	const struct verb *v;
	char name[64];

	rc = take_verb(noun, a, &v);
	if (rc)
		return rc;
	if (wants_help(a, v->usage)) {
		help_noun(noun, a->pos > start ? v->name : NULL);
		return RC_OK;
	}
	snprintf(name, sizeof(name), "%s%s%s", noun->name, single ? "" : " ",
		 single ? "" : v->name);
	rc = options_allow(name, v->usage, v->options);
	if (!rc)
		rc = wire_enter_netns();
	return rc ? rc : v->run(a);
}

/* Takes the object's word; "ls" and "flush" are complete without it. */
static const struct noun *take_noun(struct args *words)
{
	const char *word = arg_next(words);
	const struct noun *noun = commands_noun(word);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(alone) && !noun; i++) {
		if (strcmp(word, alone[i][0]))
			continue;
		noun = commands_noun(alone[i][1]);
		if (noun && noun->kind != NOUN_SINGLE)
			words->pos--;	/* it is the verb */
	}
	return noun;
}

int commands_run(struct args *words)
{
	const char *word = arg_peek(words);
	const struct noun *noun;

	if (!word)
		return run_noun(nouns[0], words);
	if (!strcmp(word, "help")) {
		arg_next(words);
		return commands_help(words);
	}
	noun = take_noun(words);
	return noun ? run_noun(noun, words) : unknown_noun(word);
}

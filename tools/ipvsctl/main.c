// SPDX-License-Identifier: GPL-2.0
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "err.h"
#include "help.h"
#include "options.h"
#include "out.h"
#include "version.h"
#include "wire.h"

static const struct noun *const nouns[] = {
	&noun_show, &noun_service, &noun_server, &noun_conn, &noun_stats,
	&noun_timeout, &noun_scheduler, &noun_sync, &noun_info, &noun_save,
	&noun_restore, NULL
};

static const char *const verb_aliases[][2] = {
	{ "ls", "show" }, { "list", "show" }, { "show", "list" },
	{ "del", "delete" }, { "rm", "delete" }, { "set", "replace" },
};

static const struct noun *find_noun(const char *word)
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
static const struct verb *find_verb(const struct noun *noun, const char *word)
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
	const char *known[ARRAY_SIZE(nouns) + 1] = { NULL };
	int i;

	for (i = 0; nouns[i]; i++)
		known[i] = nouns[i]->name;
	known[i] = "help";
	return arg_unknown(NULL, "object", word, known);
}

static int unknown_verb(const struct noun *noun, const char *word)
{
	const char *known[16] = { NULL };
	int i;

	for (i = 0; noun->verbs[i].name; i++)
		known[i] = noun->verbs[i].name;
	return arg_unknown(noun->name, "verb", word, known);
}

static int run_help(struct args *a)
{
	const char *word = arg_next(a);
	const struct noun *noun;
	const struct verb *v;

	if (!word || !strcmp(word, "help")) {
		help_all(nouns);
		return RC_OK;
	}
	noun = find_noun(word);
	if (!noun)
		return unknown_noun(word);
	word = noun->single ? NULL : arg_next(a);
	v = word ? find_verb(noun, word) : NULL;
	/* With -h after a half-written line, an unknown verb is no error. */
	if (word && !v && !opt.help)
		return unknown_verb(noun, word);
	help_noun(noun, v ? v->name : NULL);
	return RC_OK;
}

/* Without a verb the noun's first one runs; it only shows something. After
 * "stats", a word that is no verb is an argument of the first one.
 */
static int run_noun(const struct noun *noun, struct args *a)
{
	const char *word = arg_peek(a);
	const struct verb *v = noun->verbs;
	char name[64];
	int rc;

	if (!noun->single && word) {
		v = find_verb(noun, word);
		if (v)
			arg_next(a);
		else if (noun == &noun_stats)
			v = noun->verbs;
		else
			return unknown_verb(noun, word);
	}
	snprintf(name, sizeof(name), "%s%s%s", noun->name,
		 noun->single ? "" : " ", noun->single ? "" : v->name);
	rc = options_allow(name, v->options);
	if (!rc)
		rc = wire_enter_netns();
	return rc ? rc : v->run(a);
}

static int run(struct args *words)
{
	const struct noun *noun = &noun_show;
	const char *word;

	if (opt.version) {
		puts("ipvsctl " IPVSCTL_VERSION);
		return RC_OK;
	}
	if (opt.help)
		return run_help(words);
	word = arg_next(words);
	if (word && !strcmp(word, "help"))
		return run_help(words);
	if (word)
		noun = find_noun(word);
	return noun ? run_noun(noun, words) : unknown_noun(word);
}

int main(int argc, char **argv)
{
	struct args words = { .word = calloc((size_t)argc + 1, sizeof(char *)) };
	int rc, flushed;

	setlocale(LC_CTYPE, "");	/* line drawing; numbers stay plain */
	if (!words.word)
		return RC_REFUSED;
	rc = options_parse(argc, argv, &words);
	if (!rc)
		rc = run(&words);
	flushed = out_finish();
	if (!rc)
		rc = flushed;
	err_flush();
	wire_close();
	free(words.word);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "commands.h"
#include "complete.h"
#include "complete_values.h"
#include "err.h"
#include "grammar.h"
#include "ipvsadm.h"
#include "options.h"

/* The user waits for the key. */
enum { PATIENCE_MS = 1000, NAMES_MAX = 128 };

/* The words that fit. */
struct found {
	const char *prefix;		/* what stands at the cursor */
	size_t skip;			/* of it, "--OPTION=" */
	char **line;
	size_t n, size;
	bool files;
	/* Names of the grammar that were looked at already. */
	struct { const char *p; size_t len; } name[NAMES_MAX];
	size_t nnames;
	char *const *word;
	int count;
};

/* Shells insert it as it is. */
static bool is_plain(const char *word)
{
	for (; *word; word++)
		if (!isalnum((unsigned char)*word) && !strchr("-_.:/,=+@%[]", *word))
			return false;
	return true;
}

static void take(const char *word, const char *help, void *arg)
{
	struct found *f = arg;
	char *line = NULL;

	if (strncmp(word, f->prefix + f->skip, strlen(f->prefix + f->skip)) ||
	    !is_plain(word))
		return;
	if (f->n == f->size) {
		size_t size = f->size ? 2 * f->size : 64;
		char **more = reallocarray(f->line, size, sizeof(*more));

		if (!more)
			return;
		f->line = more;
		f->size = size;
	}
	if (asprintf(&line, "%.*s%s\t%s", (int)f->skip, f->prefix, word,
		     help ? help : "") >= 0)
		f->line[f->n++] = line;
}

/* What the grammar says may come next. */
static void take_next(const char *name, size_t len, void *arg)
{
	struct found *f = arg;
	struct values_line line = {
		.word = f->word, .count = f->count, .value = take, .arg = f,
	};
	char text[32];
	size_t i;

	for (i = 0; i < f->nnames; i++)
		if (f->name[i].len == len && !strncmp(f->name[i].p, name, len))
			return;
	if (f->nnames == NAMES_MAX)
		return;
	f->name[f->nnames].p = name;
	f->name[f->nnames++].len = len;
	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	if (!grammar_is_name(name, len))
		take(text, NULL, f);
	else if (!strcmp(text, "FILE"))
		f->files = true;
	else
		values_each(name, len, &line);
}

static void take_grammar(struct found *f, const char *usage, char *const *word,
			 int count)
{
	struct grammar_line line = {
		.word = word, .count = count, .next = take_next, .arg = f,
	};

	grammar_next(usage, &line);
}

static void take_option(const char *name, const char *help, void *arg)
{
	char text[40];

	snprintf(text, sizeof(text), "--%s", name);
	take(text, help, arg);
}

/* Where the words lead: to a noun, and to a verb unless that is to come. */
struct command {
	const struct noun *noun;
	const struct verb *verb;
	bool wrong;
};

static struct command find_command(struct args *words)
{
	const char *word = arg_next(words);
	struct command at = { .noun = word ? commands_noun(word) : NULL };

	if (!at.noun) {
		at.wrong = word;
		return at;
	}
	word = arg_peek(words);
	if (at.noun->kind == NOUN_SINGLE)
		at.verb = at.noun->verbs;
	else if (word)
		at.verb = commands_verb(at.noun, word);
	if (at.noun->kind != NOUN_SINGLE && at.verb)
		arg_next(words);
	if (word && !at.verb && at.noun->kind == NOUN_FIRST)
		at.verb = at.noun->verbs;
	at.wrong = word && !at.verb;
	return at;
}

static void take_verbs(struct found *f, const struct noun *noun)
{
	const struct verb *v;

	for (v = noun->verbs; v->name; v++)
		take(v->name, v->help, f);
}

static void take_nouns(struct found *f, const struct noun *const *nouns)
{
	for (; *nouns; nouns++)
		take((*nouns)->name, (*nouns)->help, f);
}

/* After "help". */
static void take_help(struct found *f, const struct noun *const *nouns,
		      struct args *words)
{
	const char *word = arg_next(words);
	const struct noun *noun = word ? commands_noun(word) : NULL;

	if (!word)
		take_nouns(f, nouns);
	else if (noun && noun->kind != NOUN_SINGLE && !arg_peek(words))
		take_verbs(f, noun);
}

static void take_words(struct found *f, const struct noun *const *nouns,
		       struct args *words)
{
	const char *first = arg_peek(words);
	struct command at;

	if (!first) {
		take_nouns(f, nouns);
		take("help", "how commands are written", f);
		return;
	}
	if (!strcmp(first, "help")) {
		arg_next(words);
		take_help(f, nouns, words);
		return;
	}
	at = find_command(words);
	if (at.wrong)
		return;
	if (!at.verb)
		take_verbs(f, at.noun);
	if (!at.verb && at.noun->kind == NOUN_FIRST)
		at.verb = at.noun->verbs;
	if (at.verb)
		take_grammar(f, at.verb->usage, words->word + words->pos,
			     words->count - words->pos);
}

/* Without a verb, those of the noun's first one; without a noun, all. */
static void take_options(struct found *f, struct args *words)
{
	bool none = !arg_peek(words);
	struct command at = find_command(words);

	if (at.wrong || (at.noun && !strcmp(at.noun->name, "compat")))
		return;
	options_each(none ? ~0U : (at.verb ? at.verb : at.noun->verbs)->options,
		     take_option, f);
}

/* The formats that a noun has. */
static const char *formats(const struct noun *noun)
{
	static const struct { const char *noun, *formats; } all[] = {
		{ "stats", "table|json|prometheus" },
		{ "save", "ipvsadm|json|yaml" },
		{ "export", "ipvsadm|json|yaml" },
		{ "import", "ipvsadm|json|yaml" },
	};
	size_t i;

	for (i = 0; noun && i < ARRAY_SIZE(all); i++)
		if (!strcmp(noun->name, all[i].noun))
			return all[i].formats;
	return "";
}

static void take_value(struct found *f, const char *value, struct args *words)
{
	if (!strcmp(value, "FORMAT"))
		value = formats(find_command(words).noun);
	take_grammar(f, value, NULL, 0);
}

/* Splits what is before the cursor. The options of that line are not those of this run, but
 * for the namespace.
 */
static int split(struct args *line, int count, struct args *words)
{
	const struct options usual = opt;
	int rc = options_parse(count + 1, line->word + line->pos - 1, words);
	const char *netns = opt.netns;

	opt = usual;
	opt.netns = netns;
	opt.quiet = true;
	opt.timeout_ms = PATIENCE_MS;
	return rc || options_unknown() ? RC_USAGE : RC_OK;
}

/* Of two lines for a word, the one without a text is left out; it comes first. */
static bool is_double(const char *line, const char *next)
{
	size_t len = strcspn(line, "\t");

	return !strncmp(line, next, len) && next[len] == '\t';
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print(struct found *f)
{
	size_t i;

	puts(f->files ? "files" : "words");
	if (f->n)
		qsort(f->line, f->n, sizeof(*f->line), compare);
	for (i = 0; i < f->n; i++)
		if (i + 1 == f->n || !is_double(f->line[i], f->line[i + 1]))
			puts(f->line[i]);
	for (i = 0; i < f->n; i++)
		free(f->line[i]);
	free(f->line);
}

static void find(struct found *f, const struct noun *const *nouns,
		 struct args *line, struct args *words)
{
	int count = line->count - line->pos - 1;
	char **word = line->word + line->pos;
	const char *last = count > 0 ? word[count - 1] : "";
	const char *value = options_value(last);
	char name[40];

	if (value && value[0] != '[')
		count--;
	else
		value = NULL;
	if (split(line, count, words))
		return;
	f->word = words->word;
	f->count = words->count;
	if (!value && f->prefix[0] == '-' && strchr(f->prefix, '=')) {
		f->skip = strcspn(f->prefix, "=") + 1;
		snprintf(name, sizeof(name), "%.*s", (int)f->skip - 1, f->prefix);
		value = options_value(name);
		if (!value)
			return;
		value += value[0] == '[';
	}
	if (value)
		take_value(f, value, words);
	else if (f->prefix[0] == '-')
		take_options(f, words);
	else
		take_words(f, nouns, words);
}

int complete_run(const struct noun *const *nouns, struct args *line)
{
	struct args words = { .word = calloc((size_t)line->count + 1, sizeof(char *)) };
	struct found f = { .prefix = "" };
	int count = line->count - line->pos;

	if (count > 0)
		f.prefix = line->word[line->count - 1];
	if (words.word && count > 0 && !ipvsadm_is_line(count - 1, line->word + line->pos))
		find(&f, nouns, line, &words);
	print(&f);
	free(words.word);
	err_forget();
	return RC_OK;
}

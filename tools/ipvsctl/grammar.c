// SPDX-License-Identifier: GPL-2.0
/* A part of a grammar takes a set of places in the line where it may begin, and returns the
 * set of places where it may end. So every reading of an ambiguous line is followed at once,
 * and the work grows with the lengths of line and grammar only.
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "grammar.h"
#include "words.h"

#define DIGITS "0123456789"

enum { BITS = 64, SET_WORDS = (GRAMMAR_WORDS_MAX + BITS) / BITS };

struct set {
	uint64_t bits[SET_WORDS];
};

/* From @p up to @end. */
struct part {
	const char *p, *end;
};

static struct set match(struct part part, struct set in,
			const struct grammar_line *line);

static void add(struct set *s, int place)
{
	s->bits[place / BITS] |= 1ULL << place % BITS;
}

static bool has(const struct set *s, int place)
{
	return s->bits[place / BITS] >> place % BITS & 1;
}

/* Adds @more; false if there was nothing to add. */
static bool join(struct set *s, const struct set *more)
{
	uint64_t added = 0;
	int i;

	for (i = 0; i < SET_WORDS; i++) {
		added |= more->bits[i] & ~s->bits[i];
		s->bits[i] |= more->bits[i];
	}
	return added;
}

bool grammar_is_name(const char *name, size_t len)
{
	return len && isupper((unsigned char)name[0]);
}

/* What a word looks like tells the readings of a line apart. */
static bool looks_like(const char *word, const char *name, size_t len)
{
	static const struct {
		const char *name, *first, *any;	/* characters: the first one, or any */
	} looks[] = {
		{ "N", DIGITS, NULL }, { "DUR", DIGITS, NULL },
		{ "LEN", DIGITS, NULL }, { "SECONDS", DIGITS, NULL },
		{ "SIZES", DIGITS, NULL }, { "VALUE", DIGITS, NULL },
		{ "ENDPOINT", NULL, ".:" }, { "ADDR", NULL, ".:" },
		{ "SRV", NULL, ".:" }, { "RANGE", NULL, ".:" }, { "SERVICE", NULL, ":" },
	};
	size_t i;

	for (i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		if (strlen(looks[i].name) == len &&
		    !strncmp(name, looks[i].name, len))
			return looks[i].any ? word[strcspn(word, looks[i].any)] :
			       word[0] && strchr(looks[i].first, word[0]);
	return true;
}

/* @open is a bracket; returns what is after its pair. */
static const char *skip_brackets(const char *open, const char *end)
{
	const char *p;
	int depth = 0;

	for (p = open; p < end; p++) {
		depth += *p == '[' || *p == '{';
		depth -= *p == ']' || *p == '}';
		if (!depth)
			return p + 1;
	}
	return end;
}

static size_t word_len(const char *p, const char *end)
{
	size_t len = 0;

	while (p + len < end && (isalnum((unsigned char)p[len]) || p[len] == '-'))
		len++;
	return len;
}

/* One word; what is in brackets without a blank before them, as in client[/LEN], may be a
 * part of it.
 */
static struct set match_word(struct part part, const struct set *in,
			     const struct grammar_line *line)
{
	size_t len = word_len(part.p, part.end);
	const char *more = grammar_is_name(part.p, len) ?
			   words_grammar(part.p, len) : NULL;
	struct set out = { { 0 } };
	int i;

	if (more)
		return match((struct part){ more, more + strlen(more) }, *in, line);
	for (i = 0; i < line->count; i++) {
		const char *word = line->word[i];

		if (!has(in, i))
			continue;
		if (grammar_is_name(part.p, len) ? looks_like(word, part.p, len) :
		    !strncmp(word, part.p, len) &&
		    (!word[len] || part.p + len < part.end))
			add(&out, i + 1);
	}
	if (has(in, line->count) && len)
		line->next(part.p, len, line->arg);
	return out;
}

/* The end of the item at @p, without the dots after it. */
static const char *item_end(const char *p, const char *end)
{
	if (*p == '[' || *p == '{')
		return skip_brackets(p, end);
	p += word_len(p, end);
	return p < end && *p == '[' ? skip_brackets(p, end) : p;
}

static struct set match_once(struct part item, struct set in,
			     const struct grammar_line *line)
{
	struct set out;

	if (*item.p != '[' && *item.p != '{')
		return match_word(item, &in, line);
	out = match((struct part){ item.p + 1, item.end - 1 }, in, line);
	if (*item.p == '[')
		join(&out, &in);
	return out;
}

/* @items: one after another, of which any number follow in any order. */
static struct set match_many(struct part items, struct set in,
			     const struct grammar_line *line)
{
	struct set all = in;
	bool more = true;

	while (more) {
		struct part item = { items.p, items.p };

		more = false;
		for (; item.p < items.end; item.p = item.end) {
			struct set out;

			item.p += strspn(item.p, " .");
			if (item.p >= items.end)
				break;
			item.end = item_end(item.p, items.end);
			if (item.end == item.p)
				return all;
			out = match_once(item, all, line);
			more |= join(&all, &out);
		}
	}
	return all;
}

/* Optional items that begin with a lower-case word may come in any order. */
static bool is_movable(const char *p, const char *end)
{
	return p + 1 < end && *p == '[' && islower((unsigned char)p[1]);
}

static struct set match_sequence(struct part part, struct set in,
				 const struct grammar_line *line)
{
	const char *p = part.p + strspn(part.p, " ");

	while (p < part.end) {
		struct part item = { p, item_end(p, part.end) };
		bool many = is_movable(p, part.end);

		if (item.end == p)	/* no grammar */
			return (struct set){ { 0 } };
		for (p = item.end + strspn(item.end, " ."); is_movable(item.p, part.end) &&
		     is_movable(p, part.end); p += strspn(p, " .")) {
			p = item_end(p, part.end);
			item.end = p;
		}
		if (!strncmp(item.end, "...", 3) && !many) {
			in = match_once(item, in, line);
			many = true;
		}
		in = many ? match_many(item, in, line) : match_once(item, in, line);
	}
	return in;
}

/* Parts between bars. */
static struct set match(struct part part, struct set in,
			const struct grammar_line *line)
{
	struct set out = { { 0 } }, one;
	const char *p;

	for (p = part.p; p < part.end;) {
		if (*p == '[' || *p == '{') {
			p = skip_brackets(p, part.end);
		} else if (*p == '|') {
			one = match_sequence((struct part){ part.p, p }, in, line);
			join(&out, &one);
			part.p = ++p;
		} else {
			p++;
		}
	}
	one = match_sequence(part, in, line);
	join(&out, &one);
	return out;
}

void grammar_next(const char *usage, const struct grammar_line *line)
{
	struct set begin = { { 1 } };

	if (line->count <= GRAMMAR_WORDS_MAX)
		match((struct part){ usage, usage + strlen(usage) }, begin, line);
}

// SPDX-License-Identifier: GPL-2.0
/* Options may stand anywhere on the line and are never abbreviated: a prefix
 * that is unique today may be ambiguous after the next option, and scripts that
 * use it would break. getopt_long() accepts prefixes, so it is not used.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "args.h"
#include "err.h"
#include "options.h"
#include "suggest.h"
#include "words.h"

enum { WAIT_DEFAULT = 60 };

enum value_kind { NONE, VALUE, MAYBE_DURATION };

static const struct option_def {
	char letter;
	const char *name;
	enum value_kind kind;
	int id;
	const char *value, *help;
	unsigned int verbs;	/* the OPT_* that verbs list; 0: all take it */
} defs[] = {
	{ 'j', "json", NONE, 'j', NULL,
	  "print one JSON document; errors are JSON too", 0 },
	{ 'p', "pretty", NONE, 'p', NULL, "indent the JSON", 0 },
	{ 'o', "columns", VALUE, 'o', "LIST",
	  "columns of a table, separated by commas (save: the file to write)", 0 },
	{ 'H', "no-header", NONE, 'H', NULL, "leave the table's heading out", 0 },
	{ 'C', "color", VALUE, 'C', "WHEN",
	  "auto (on a terminal), always or never", 0 },
	{ 'F', "format", VALUE, 'F', "FORMAT",
	  "form of stats (table, json, prometheus) or save, export (ipvsadm, json, yaml)",
	  OPT_FORMAT },
	{ 'w', "watch", VALUE, 'W', "SECS",
	  "show, stats, top: print again every SECS seconds until interrupted", OPT_WATCH },
	{ 'b', "batch", NONE, 'b', NULL, "top: print instead of drawing", OPT_BATCH },
	{ 0, "output", VALUE, 'O', "FILE",
	  "stats: write FILE, and replace it only when all is written", OPT_OUTPUT },
	{ 'N', "netns", VALUE, 'N', "NS",
	  "network namespace to work in: a name, a process id or a path", 0 },
	{ '4', "ipv4", NONE, '4', NULL, "IPv4 only", 0 },
	{ '6', "ipv6", NONE, '6', NULL, "IPv6 only", 0 },
	{ 'n', "dry-run", NONE, 'n', NULL,
	  "check and print what would be done, change nothing", 0 },
	{ 'q', "quiet", NONE, 'q', NULL, "do not report what was done", 0 },
	{ 'v', "verbose", NONE, 'v', NULL,
	  "print each change sent to the kernel; twice: dump the messages", 0 },
	{ 0, "timeout", VALUE, 'T', "SECS",
	  "no idle time: how long ipvsctl waits for the kernel (default 5)", 0 },
	{ 0, "if-exists", NONE, 'e', NULL, "delete: absence is not an error", OPT_IF_EXISTS },
	{ 0, "yes", NONE, 'y', NULL,
	  "flush: really delete every service; conn kill: end them all", OPT_YES },
	{ 0, "reset", NONE, 'R', NULL,
	  "conn kill: tell both ends of TCP and SCTP connections", OPT_RESET },
	{ 0, "wait", MAYBE_DURATION, 'w', "[DUR]",
	  "drain: wait until no connection is left (default 60 s)", OPT_WAIT },
	{ 0, "deadline", VALUE, 'D', "DUR",
	  "drain: the server counts as drained after this time", OPT_DEADLINE },
	{ 0, "then", VALUE, 'E', "WHAT",
	  "drain: stay, delete, reset or move, when it is drained", OPT_THEN },
	{ 0, "kill", NONE, 'k', NULL,
	  "drain: drop the connections that are left", OPT_KILL },
	{ 0, "prune", NONE, 'P', NULL,
	  "apply, diff: also remove what the file does not name", OPT_PRUNE },
	{ 0, "detailed-exitcode", NONE, 'x', NULL,
	  "apply: exit status 1 if anything was changed", OPT_DETAILED },
	{ 0, "confirm", VALUE, 'K', "DUR",
	  "apply: take the change back after DUR unless \"ipvsctl confirm\" keeps it",
	  OPT_CONFIRM },
	{ 0, "owner", VALUE, 'A', "NAME",
	  "apply, diff: whose the services are; --prune removes only such",
	  OPT_OWNER },
	{ 0, "ipfix", VALUE, 'I', "ADDR",
	  "conn log: send records to this IPFIX collector instead; ADDR:PORT if not 4739",
	  OPT_IPFIX },
	{ 0, "probe", NONE, 'B', NULL,
	  "doctor: also open a TCP connection to each real server", OPT_PROBE },
	{ 't', "timestamp", NONE, 't', NULL,
	  "monitor: put the time before each event", OPT_TIMESTAMP },
	{ 'h', "help", NONE, 'h', NULL, "this text, or the help of one object", 0 },
	{ 'V', "version", NONE, 'V', NULL, "print the version", 0 },
};

/* The first option that is none of these. */
static const char *unknown;

static const struct option_def *find(const char *name, size_t len, char letter)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(defs); i++) {
		if (letter && defs[i].letter == letter)
			return &defs[i];
		if (name && strlen(defs[i].name) == len &&
		    !strncmp(defs[i].name, name, len))
			return &defs[i];
	}
	return NULL;
}

static int set_color(const char *when)
{
	if (!strcmp(when, "auto"))
		opt.color = COLOR_AUTO;
	else if (!strcmp(when, "always"))
		opt.color = COLOR_ALWAYS;
	else if (!strcmp(when, "never"))
		opt.color = COLOR_NEVER;
	else
		return fail(RC_USAGE, NULL,
			    "bad color \"%s\": write auto, always or never",
			    when);
	return RC_OK;
}

static int set_number(const char *name, const char *value, uint32_t *out)
{
	if (value && parse_duration(value, out))
		return RC_OK;
	return fail(RC_USAGE, NULL,
		    "bad %s \"%s\": write a time from 1 second to 31 days, such as 90 or 2m",
		    name, value);
}

static int set_value(const struct option_def *def, const char *value)
{
	uint32_t secs = 0;
	int rc;

	switch (def->id) {
	case 'o':
		opt.columns = value;
		return RC_OK;
	case 'C':
		return set_color(value);
	case 'F':
		opt.format = value;
		return RC_OK;
	case 'W':
		return set_number("interval", value, &opt.watch_secs);
	case 'O':
		opt.output = value;
		return RC_OK;
	case 'N':
		opt.netns = value;
		return RC_OK;
	case 'T':
		rc = set_number("timeout", value, &secs);
		opt.timeout_ms = secs > 1000000 ? 1000000000 : secs * 1000;
		return rc;
	case 'w':
		opt.wait_secs = WAIT_DEFAULT;
		return value ? set_number("wait", value, &opt.wait_secs) : RC_OK;
	case 'D':
		return set_number("deadline", value, &opt.deadline_secs);
	case 'A':
		opt.owner = value;
		return RC_OK;
	case 'I':
		opt.ipfix = value;
		return RC_OK;
	case 'K':
		return set_number("confirm", value, &opt.confirm_secs);
	case 'E':
		opt.then = value;
		return RC_OK;
	}
	return RC_OK;
}

static void set_flag(int id)
{
	static const struct { int id; bool *flag; } flags[] = {
		{ 'j', &opt.json }, { 'p', &opt.pretty },
		{ 'H', &opt.no_header }, { 'n', &opt.dry_run },
		{ 'q', &opt.quiet }, { 'h', &opt.help },
		{ 'V', &opt.version },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		if (flags[i].id == id)
			*flags[i].flag = true;
	if (id == 'v')
		opt.verbose++;
	if (id == '4' || id == '6')
		opt.family = id == '4' ? AF_INET : AF_INET6;
}

/* Letters of ipvsadm for what are words here. */
static const char *word_of_letter(char letter)
{
	static const struct { char letter; const char *word; } words[] = {
		{ 't', "tcp" }, { 'u', "udp" }, { 'f', "fwmark" },
		{ 's', "scheduler" }, { 'r', "server" }, { 'm', "nat" },
		{ 'g', "dr" }, { 'i', "tun" }, { 'w', "weight" },
		{ 'x', "max-conns" }, { 'y', "min-conns" }, { 'M', "mask" },
		{ 'b', "flags" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].letter == letter)
			return words[i].word;
	return NULL;
}

static int refuse_unknown(const char *verb, const char *usage)
{
	bool is_long = unknown[1] == '-';
	const char *known[ARRAY_SIZE(defs) + 1] = { NULL };
	const char *word;
	char name[32];
	size_t i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(defs); i++)
		known[i] = defs[i].name;
	rc = fail(RC_USAGE, NULL, "unknown option \"%s\"", unknown);
	snprintf(name, sizeof(name), "%s", unknown + 1 + is_long);
	name[strcspn(name, "=")] = '\0';
	if ((!strcmp(name, "f") || !strcmp(name, "file")) &&
	    usage_has(usage, "FILE")) {
		hint("FILE has no -f here: ipvsctl %s FILE", verb);
		return rc;
	}
	word = is_long ? name : word_of_letter(name[0]);
	if (word && usage_has(usage, word)) {
		hint("\"%s\" has no dash here; see: ipvsctl help %s", word,
		     verb);
		return rc;
	}
	word = is_long ? suggest(name, known) : NULL;
	if (word)
		hint("did you mean: --%s", word);
	else
		hint("see: ipvsctl help %s", verb);
	return rc;
}

/* Of an option that other verbs take; its letter may be meant as ipvsadm's. */
static int refuse_foreign(const struct option_def *def, const char *verb,
			  const char *usage)
{
	const char *word = def->letter ? word_of_letter(def->letter) : NULL;
	int rc = fail(RC_USAGE, NULL, "option --%s does not belong to \"%s\"",
		      def->name, verb);

	if (word && usage_has(usage, word))
		hint("\"%s\" has no dash here; see: ipvsctl help %s", word,
		     verb);
	return rc;
}

/* Sets @def from @attached or, without that, from the next word. */
static int take_value(const struct option_def *def, const char *attached,
		      struct args *line)
{
	const char *next = arg_peek(line);
	uint32_t secs;

	if (attached)
		return set_value(def, attached);
	if (def->kind == MAYBE_DURATION) {
		if (next && parse_duration(next, &secs))
			return set_value(def, arg_next(line));
		return set_value(def, NULL);
	}
	if (!next)
		return fail(RC_USAGE, NULL, "option --%s needs a value",
			    def->name);
	return set_value(def, arg_next(line));
}

static int parse_long(const char *word, struct args *line)
{
	size_t len = strcspn(word + 2, "=");
	const char *attached = word[2 + len] ? word + 2 + len + 1 : NULL;
	const struct option_def *def = find(word + 2, len, 0);

	if (!def) {
		unknown = unknown ? unknown : word;
		return RC_OK;
	}
	opt.given |= def->verbs;
	if (def->kind != NONE)
		return take_value(def, attached, line);
	if (attached)
		return fail(RC_USAGE, NULL, "option --%s takes no value",
			    def->name);
	set_flag(def->id);
	return RC_OK;
}

static int parse_short(const char *word, struct args *line)
{
	const char *p;

	for (p = word + 1; *p; p++) {
		const struct option_def *def = find(NULL, 0, *p);

		if (!def) {
			unknown = unknown ? unknown : word;
			return RC_OK;
		}
		opt.given |= def->verbs;
		if (def->kind != NONE) {
			const char *rest = p[1] == '=' ? p + 2 : p + 1;

			return take_value(def, p[1] ? rest : NULL, line);
		}
		set_flag(def->id);
	}
	return RC_OK;
}

/* "-" is a file name; -5 gets the message about a bad number. */
static bool is_option(const char *word)
{
	if (word[0] != '-' || !word[1])
		return false;
	if (word[1] >= '0' && word[1] <= '9')
		return !strcmp(word, "-4") || !strcmp(word, "-6");
	return true;
}

int options_parse(int argc, char **argv, struct args *words)
{
	struct args line = { .word = argv, .count = argc, .pos = 1 };
	const char *word;
	int rc = RC_OK;

	while (!rc && (word = arg_next(&line))) {
		if (!strcmp(word, "--"))
			break;
		if (!is_option(word)) {
			words->word[words->count++] = line.word[line.pos - 1];
			if (words->count == 1 && !strcmp(word, "compat"))
				break;	/* the rest are options of ipvsadm */
		} else if (word[1] == '-') {
			rc = parse_long(word, &line);
		} else {
			rc = parse_short(word, &line);
		}
	}
	while (!rc && arg_peek(&line))
		words->word[words->count++] = line.word[line.pos++];
	return rc;
}

const char *options_unknown(void)
{
	return unknown;
}

int options_allow(const char *verb, const char *usage, unsigned int allowed)
{
	unsigned int wrong = opt.given & ~allowed;
	size_t i;

	if (unknown)
		return refuse_unknown(verb, usage);

	for (i = 0; i < ARRAY_SIZE(defs); i++)
		if (wrong & defs[i].verbs)
			return refuse_foreign(&defs[i], verb, usage);
	return RC_OK;
}

const char *options_value(const char *word)
{
	const struct option_def *def = NULL;
	const char *p;

	if (!is_option(word) || !strcmp(word, "--"))
		return NULL;
	if (word[1] == '-')
		def = find(word + 2, strlen(word + 2), 0);
	/* The first letter that has a value takes the rest of the word. */
	for (p = word + 1; word[1] != '-' && *p; p++) {
		def = find(NULL, 0, *p);
		if (!def || def->kind != NONE)
			break;
	}
	return def && (word[1] == '-' || !p[0] || !p[1]) ? def->value : NULL;
}

void options_each(unsigned int verbs,
		  void (*fn)(const char *name, const char *help, void *arg),
		  void *arg)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(defs); i++)
		if (!defs[i].verbs || verbs & defs[i].verbs)
			fn(defs[i].name, defs[i].help, arg);
}

void options_of(unsigned int verbs)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(defs); i++)
		if (verbs & defs[i].verbs)
			printf(" [--%s%s%s]", defs[i].name,
			       defs[i].value ? " " : "",
			       defs[i].value ? defs[i].value : "");
}

void options_help(void)
{
	size_t i;

	puts("Options (anywhere on the line):");
	for (i = 0; i < ARRAY_SIZE(defs); i++) {
		char name[40];

		snprintf(name, sizeof(name), "--%s%s%s", defs[i].name,
			 defs[i].value ? " " : "",
			 defs[i].value ? defs[i].value : "");
		printf("  %c%c%c %-18s %s\n", defs[i].letter ? '-' : ' ',
		       defs[i].letter ? defs[i].letter : ' ',
		       defs[i].letter ? ',' : ' ', name, defs[i].help);
	}
}

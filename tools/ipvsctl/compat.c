// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl compat`: runs a line of ipvsadm. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "commands.h"
#include "compat.h"
#include "err.h"
#include "help.h"
#include "ipvsadm.h"
#include "opt.h"
#include "options.h"

enum { WORDS_MAX = 72, TEXT_MAX = 1024, RC_IPVSADM = 255 };

static const char *joined(const struct args *line)
{
	static char text[TEXT_MAX];
	size_t used = 0;
	int i;

	text[0] = '\0';
	for (i = 0; i < line->count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%s", i ? " " : "", line->word[i]);
	return text;
}

int compat_teach(struct args *words)
{
	struct args line = { 0 };
	char given[TEXT_MAX];
	int rc;

	snprintf(given, sizeof(given), "%s", joined(words));
	rc = ipvsadm_translate(words, false, &line);
	if (rc)
		return rc;
	rc = fail(RC_USAGE, NULL, "\"%s\" is a line of ipvsadm", given);
	/* What deletes everything is not for copying. */
	if (line.count > 1 && !strcmp(line.word[1], "flush")) {
		hint("-C is --color here; see: ipvsctl help service");
		return rc;
	}
	hint("write: ipvsctl %s", joined(&line));
	hint("or run it as it is: ipvsctl compat %s", given);
	return rc;
}

static int run_line(struct args *line)
{
	char *argv[WORDS_MAX] = { (char *)"ipvsctl" };
	char *word[WORDS_MAX] = { NULL };
	struct args words = { .word = word };
	int i, rc;

	if (opt.verbose)
		note("ipvsctl %s", joined(line));
	for (i = 0; i < line->count && i < WORDS_MAX - 2; i++)
		argv[i + 1] = line->word[i];
	rc = options_parse(i + 1, argv, &words);
	return rc ? rc : commands_run(&words);
}

int compat_run(struct args *words)
{
	const char *word = arg_peek(words);
	struct args line = { 0 };
	int rc;

	if (word && (!strcmp(word, "-h") || !strcmp(word, "--help"))) {
		help_noun(&noun_compat, NULL);
		return RC_OK;
	}
	rc = ipvsadm_translate(words, true, &line);
	if (!rc)
		rc = run_line(&line);
	if (!rc)
		return RC_OK;
	return rc == RC_USAGE || rc == RC_BACKEND ? 2 : RC_IPVSADM;
}

static const struct verb verbs[] = {
	{ "compat", compat_run, "IPVSADM-OPTION...",
	  "run a line of ipvsadm; with -v before compat, print it in ipvsctl's words", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_compat = {
	"compat", NULL, verbs, "command lines of ipvsadm", NOUN_SINGLE
};

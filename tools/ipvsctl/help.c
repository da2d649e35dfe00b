// SPDX-License-Identifier: GPL-2.0
/* Help is printed from the tables that run the commands. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "help.h"
#include "options.h"
#include "words.h"

static const char codes[] =
"Exit status:\n"
"  0 done  1 a difference or a problem was found  2 wrong words or file, nothing sent\n"
"  3 refused by the kernel  4 no such service, server or scheduler  5 already exists\n"
"  6 not permitted  7 no IPVS module, or it lacks the feature  8 partly applied\n"
"  9 timed out\n";

static const char examples[] =
"Examples:\n"
"  ipvsctl service add tcp 192.0.2.10:80 scheduler wrr server 10.0.0.11:8080 nat weight 3 server 10.0.0.12:8080 nat\n"
"  ipvsctl server change tcp 192.0.2.10:80 10.0.0.11:8080 weight 5\n"
"  ipvsctl server drain tcp 192.0.2.10:80 10.0.0.11:8080 --wait 2m\n"
"  ipvsctl show\n";

static void print_verb(const struct noun *noun, const struct verb *v)
{
	bool single = noun->kind == NOUN_SINGLE;

	printf("  ipvsctl %s%s%s%s%s", noun->name, single ? "" : " ",
	       single ? "" : v->name, v->usage[0] ? " " : "", v->usage);
	options_of(v->options);
	printf("\n      %s\n", v->help);
}

void help_noun(const struct noun *noun, const char *verb)
{
	const struct verb *v;
	char usage[1024] = "";

	printf("%s: %s", noun->name, noun->help);
	if (noun->alias)
		printf(" (alias: %s)", noun->alias);
	puts("\n");
	for (v = noun->verbs; v->name; v++)
		if (!verb || !strcmp(verb, v->name)) {
			size_t used = strlen(usage);

			print_verb(noun, v);
			snprintf(usage + used, sizeof(usage) - used, " %s",
				 v->usage);
		}
	puts("");
	words_help(usage);
}

void help_all(const struct noun *const *nouns)
{
	const struct verb *v;

	puts("ipvsctl: set up and watch a Layer-4 load balancer (l4lb, or in-tree ip_vs)\n");
	puts("Usage: ipvsctl [OPTION]... [OBJECT] [VERB] [WORDS]...\n");
	puts("Objects and verbs (no object: show everything):");
	for (; *nouns; nouns++) {
		char line[128] = "";

		for (v = (*nouns)->verbs; v->name && (*nouns)->kind != NOUN_SINGLE; v++) {
			strcat(line, v == (*nouns)->verbs ? "" : "|");
			strcat(line, v->name);
		}
		printf("  %-10s %-52s %s\n", (*nouns)->name, line,
		       (*nouns)->help);
	}
	puts("  help       [OBJECT [VERB]]\n");
	puts("Aliases: svc = service, rs = server, sched = scheduler, c = conn;\n"
	     "  ls, list = show; del, rm = delete; set = replace\n");
	words_help(NULL);
	puts("");
	options_help();
	puts("");
	fputs(codes, stdout);
	puts("");
	fputs(examples, stdout);
}

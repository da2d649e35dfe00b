/* SPDX-License-Identifier: GPL-2.0 */
/* The table of commands: a noun has verbs, a verb has a function. The same rows
 * make the help and the completion, and tests hold the manual against them.
 *
 * A usage is a grammar: [optional], {one|of|these}, item... (any number of it),
 * lower case for words written as they are, upper case for words of words.c.
 * Optional items side by side that begin with a lower-case word may come in any
 * order.
 */
#ifndef IPVSCTL_CMD_H
#define IPVSCTL_CMD_H

#include <stddef.h>

struct args;

struct verb {
	const char *name;
	int (*run)(struct args *a);
	const char *usage;	/* the words after the verb: a grammar */
	const char *help;	/* one line */
	unsigned int options;	/* OPT_* it takes */
};

enum noun_kind {
	NOUN_VERBS,
	NOUN_SINGLE,		/* one verb, which is not written */
	NOUN_FIRST,		/* a word that is no verb belongs to the first one */
};

struct noun {
	const char *name;
	const char *alias;
	const struct verb *verbs;	/* the last has no name */
	const char *help;
	int kind;		/* enum noun_kind */
};

/* Each is defined in the .c file of its name. */
extern const struct noun noun_show, noun_service, noun_server, noun_conn,
			 noun_stats, noun_timeout, noun_scheduler, noun_sync,
			 noun_info, noun_save, noun_restore, noun_compat,
			 noun_check, noun_apply, noun_diff, noun_export,
			 noun_rollback, noun_confirm, noun_monitor, noun_top,
			 noun_doctor, noun_fast_path, noun_import;

#endif

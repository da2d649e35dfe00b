/* SPDX-License-Identifier: GPL-2.0 */
/* Everything that is written with a dash. */
#ifndef IPVSCTL_OPTIONS_H
#define IPVSCTL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Options that only some verbs take. */
enum {
	OPT_IF_EXISTS	= 1 << 0,
	OPT_YES		= 1 << 1,
	OPT_WAIT	= 1 << 2,
	OPT_KILL	= 1 << 3,
	OPT_FORMAT	= 1 << 4,
	OPT_OUTPUT	= 1 << 5,	/* -o names a file, not columns */
};

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct options {
	bool json, pretty, no_header, quiet, dry_run, help, version;
	int verbose;
	int family;		/* AF_INET, AF_INET6, or 0 for both */
	enum color_mode color;
	const char *netns;
	const char *columns;	/* -o: column list, or a file with save */
	const char *format;	/* -F */
	uint32_t timeout_ms;	/* for one answer of the kernel */
	uint32_t wait_secs;
	unsigned int given;	/* OPT_* that were on the command line */
};

extern struct options opt;

struct args;

/* Splits argv into options (to opt) and words (to @words). */
int options_parse(int argc, char **argv, struct args *words);

/* Fails when an option was given that @verb does not take. */
int options_allow(const char *verb, unsigned int allowed);

/* Prints the options part of the help text. */
void options_help(void);

#endif

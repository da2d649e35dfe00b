/* SPDX-License-Identifier: GPL-2.0 */
/* The options of this run. */
#ifndef IPVSCTL_OPT_H
#define IPVSCTL_OPT_H

#include <stdbool.h>
#include <stdint.h>

/* Options that only some verbs take. */
enum {
	OPT_IF_EXISTS	= 1 << 0,
	OPT_YES		= 1 << 1,
	OPT_WAIT	= 1 << 2,
	OPT_KILL	= 1 << 3,
	OPT_FORMAT	= 1 << 4,
	OPT_TIMESTAMP	= 1 << 5,
	OPT_DEADLINE	= 1 << 6,
	OPT_THEN	= 1 << 7,
	OPT_RESET	= 1 << 8,
	OPT_WATCH	= 1 << 9,
	OPT_OUTPUT	= 1 << 10,
	OPT_PRUNE	= 1 << 11,
	OPT_DETAILED	= 1 << 12,
	OPT_BATCH	= 1 << 13,
	OPT_CONFIRM	= 1 << 14,
	OPT_OWNER	= 1 << 15,
	OPT_IPFIX	= 1 << 16,
	OPT_PROBE	= 1 << 17,
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
	uint32_t timeout_ms;	/* for one answer from the kernel */
	uint32_t wait_secs;
	uint32_t deadline_secs;
	const char *then;	/* --then */
	const char *owner;	/* --owner */
	uint32_t confirm_secs;	/* --confirm */
	uint32_t watch_secs;	/* 0: once */
	const char *output;	/* --output: the file to write */
	const char *ipfix;	/* --ipfix: a collector */
	unsigned int given;	/* OPT_* that were on the command line */
};

extern struct options opt;

#endif

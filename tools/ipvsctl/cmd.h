/* SPDX-License-Identifier: GPL-2.0 */
/* Tables of the command line: a noun has verbs, a verb has a function. */
#ifndef IPVSCTL_CMD_H
#define IPVSCTL_CMD_H

#include <stddef.h>

struct args;

struct verb {
	const char *name;
	int (*run)(struct args *a);
	const char *usage;	/* the words after the verb */
	const char *help;	/* one line */
	unsigned int options;	/* OPT_* it takes */
};

struct noun {
	const char *name;
	const char *alias;
	const struct verb *verbs;	/* the last has no name */
	const char *help;
	/* The noun has one verb, which is not written on the command line. */
	int single;
};

/* Each is defined in the .c file of its name. */
extern const struct noun noun_show, noun_service, noun_server, noun_conn,
			 noun_stats, noun_timeout, noun_scheduler, noun_sync,
			 noun_info, noun_save, noun_restore;

/* Help text fragments that several nouns use. */
#define USAGE_ID	"ID"
#define USAGE_SVCOPT	"[scheduler NAME] [flags FLAG,...] [persistent [DUR]|no-persistent] [mask LEN] [pe NAME|none] [ops|no-ops] [option NAME N]... [timeout {tcp|tcp-fin|udp|sctp} DUR|default ...] [on-idle forget|reset] [on-loss keep|move|reset|default] [on-drain keep|move|default] [guard reject|drop|off] [fast-path off|on|new|default] [sync on|off|templates|exceptions] [priority las [SIZE,...]|off]"
#define USAGE_SRVOPT	"[nat|dr|tun [type ipip|gue|gre] [port N] [csum|no-csum|remcsum]] [weight N] [max-conns N] [min-conns N]"
#define USAGE_FILTER	"[ID|proto P|vip ADDR[/LEN]|port N|scheduler NAME|down|overloaded]... [sort name|active|rate]"

#endif

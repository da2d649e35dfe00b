// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "words.h"

enum { NAME_WIDTH = 6 };

struct word {
	const char *name;
	const char *grammar;	/* as in a usage; NULL: any one word */
	const char *help;	/* lines; NULL: needs none */
};

static const struct word words[] = {
	{ "ID",
	  "tcp ENDPOINT|udp ENDPOINT|sctp ENDPOINT|fwmark N [inet|inet6]|SERVICE",
	  "tcp|udp|sctp ADDR:PORT   [ADDR6]:PORT for IPv6; or fwmark N [inet|inet6]\n"
	  "a range is ADDR[/LEN]:PORT[-PORT], as in tcp 192.0.2.0/28:8000-8100\n"
	  "in one word: tcp:192.0.2.10:80, fwm:7, fwm6:7" },
	{ "SRV", NULL, "ADDR[:PORT]; without a port: the service's port" },
	{ "DUR", NULL, "90, 90s, 15m, 2h or 1d" },
	{ "SCHEDS", NULL, "SCHED[,SCHED]...; default: all that are loaded" },
	{ "FILTER", "MATCH|sort {name|active|rate}", "MATCH, or sort name|active|rate" },
	{ "MATCH",
	  "proto PROTO|vip ADDR|port N|scheduler SCHED|down|overloaded",
	  "proto P, vip ADDR[/LEN], port N, scheduler SCHED, down, overloaded" },
	{ "CFILT",
	  "service ID|server SRV|client ADDR|state STATE|proto PROTO|template",
	  "service ID, server SRV, client ADDR[/LEN], state STATE, proto P, template" },
	{ "SVCOPT",
	  "SCHEDOPT|PERSISTOPT|POLICY|PATHOPT",
	  "scheduler SCHED, flags FLAG,..., persistent [DUR], no-persistent, mask LEN,\n"
	  "pe NAME|none, ops, no-ops, option OPTION VALUE,\n"
	  "timeout {tcp|tcp-fin|udp|sctp} DUR|default ..., on-idle forget|reset,\n"
	  "on-loss keep|move|reset|default, on-drain keep|move|default,\n"
	  "guard reject|drop|off, fast-path off|on|new|default,\n"
	  "sync on|off|templates|exceptions, log on|off,\n"
	  "ramp DUR|off, limit-rate N|off, limit-burst N|off, limit-conns N|off,\n"
	  "limit-reply drop|reset, latency on|off, conn-state eager|lazy,\n"
	  "snat ADDR[-ADDR]|off, priority las [SIZE,...]|off,\n"
	  "owner NAME|none, protected on|off, shadow SCHED|none" },
	{ "SRVOPT",
	  "nat|dr|tun|TUNOPT|weight N|max-conns N|min-conns N",
	  "nat, dr or tun [type ipip|gue|gre] [port N] [csum|no-csum|remcsum],\n"
	  "weight N, max-conns N, min-conns N" },
	{ "PROTO", "tcp|udp|sctp", NULL },
	/* Parts of the above. */
	{ "SCHEDOPT", "scheduler SCHED|flags FLAGS|option OPTION VALUE|ops|no-ops", NULL },
	{ "PERSISTOPT", "persistent [DUR]|no-persistent|mask LEN|pe NAME", NULL },
	{ "POLICY",
	  "timeout {{PROTO|tcp-fin} {DUR|default}}...|on-idle {forget|reset}|LOSSOPT",
	  NULL },
	{ "LOSSOPT", "on-loss {keep|move|reset|default}|on-drain {keep|move|default}", NULL },
	{ "PATHOPT",
	  "guard {reject|drop|off}|fast-path {off|on|new|default}|SYNCOPT|log {on|off}|ramp {DUR|off}|CONNOPT|PRIORITY|CLAIM",
	  NULL },
	{ "CONNOPT", "LIMITOPT|latency {on|off}|conn-state {eager|lazy}|snat {RANGE|off}", NULL },
	{ "PRIORITY", "priority {las [SIZES]|off}", NULL },
	{ "CLAIM", "owner {NAME|none}|protected {on|off}|shadow {SCHED|none}", NULL },
	{ "LIMITOPT",
	  "limit-rate {N|off}|limit-burst {N|off}|limit-conns {N|off}|limit-reply {drop|reset}",
	  NULL },
	{ "SYNCOPT", "sync {on|off|templates|exceptions}", NULL },
	{ "TUNOPT", "type {ipip|gue|gre}|port N|csum|no-csum|remcsum", NULL },
	/* Values of options. */
	{ "WHEN", "auto|always|never", NULL },
	{ "WHAT", "stay|delete|reset|move", NULL },
};

const char *words_grammar(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i].name) == len &&
		    !strncmp(words[i].name, name, len))
			return words[i].grammar;
	return NULL;
}

static bool is_letter(char c)
{
	return isalnum((unsigned char)c) || c == '-';
}

/* Is @name one of the words of @usage? */
static bool names(const char *usage, const char *name)
{
	size_t len = strlen(name);
	const char *p = usage;

	while (len && (p = strstr(p, name))) {
		if ((p == usage || !is_letter(p[-1])) && !is_letter(p[len]))
			return true;
		p += len;
	}
	return false;
}

/* Grammars name each other without circles, so this ends. */
bool usage_has(const char *usage, const char *word)
{
	size_t i;

	if (names(usage, word))
		return true;
	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].grammar && names(usage, words[i].name) &&
		    usage_has(words[i].grammar, word))
			return true;
	return false;
}

static void print_word(const struct word *w)
{
	const char *p = w->help, *end;
	const char *name = w->name;

	for (; *p; p = *end ? end + 1 : end, name = "") {
		end = p + strcspn(p, "\n");
		printf("  %-*s %.*s\n", NAME_WIDTH, name, (int)(end - p), p);
	}
}

void words_help(const char *usage)
{
	bool want[ARRAY_SIZE(words)] = { false }, more = true, any = false;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		want[i] = !usage || names(usage, words[i].name);
	while (more) {
		more = false;
		for (i = 0; i < ARRAY_SIZE(words); i++)
			for (k = 0; k < ARRAY_SIZE(words); k++)
				if (want[i] && !want[k] && words[i].help &&
				    names(words[i].help, words[k].name)) {
					want[k] = true;
					more = true;
				}
	}
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		if (!want[i] || !words[i].help)
			continue;
		if (!any)
			puts("Words:");
		any = true;
		print_word(&words[i]);
	}
}

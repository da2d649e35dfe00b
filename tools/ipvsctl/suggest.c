// SPDX-License-Identifier: GPL-2.0
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "args.h"
#include "suggest.h"

/* Words of ipvsadm and of other programs. */
static const char *const synonyms[][2] = {
	{ "yes", "on" }, { "true", "on" }, { "enable", "on" },
	{ "masq", "nat" }, { "masquerade", "nat" }, { "masquerading", "nat" },
	{ "gate", "dr" }, { "gateway", "dr" }, { "gatewaying", "dr" },
	{ "direct", "dr" }, { "droute", "dr" }, { "route", "dr" },
	{ "ipip", "tun" }, { "tunnel", "tun" }, { "tunneling", "tun" },
	{ "svc", "service" }, { "vs", "service" }, { "vip", "service" },
	{ "virtual", "service" }, { "rs", "server" }, { "real", "server" },
	{ "real-server", "server" }, { "backend", "server" },
	{ "persistence", "persistent" }, { "netmask", "mask" },
	{ "one-packet", "ops" }, { "u-threshold", "max-conns" },
	{ "l-threshold", "min-conns" }, { "connections", "conn" },
	{ "daemon", "sync" }, { "status", "show" }, { "modify", "change" },
	{ "edit", "change" }, { "update", "change" }, { "create", "add" },
	{ "new", "add" }, { "rst", "reset" },
};

static const char *const never[] = {
	"new", "off", "none", "flush", "yes", "kill", "prune", "zero", "stop",
	"reset", "no-xdp", "delete",
};

/* Edit distance; a swap of two neighbours counts as one edit. */
static unsigned int distance(const char *a, const char *b)
{
	enum { LEN = 32 };
	unsigned int d[LEN + 1][LEN + 1];
	size_t la = strlen(a), lb = strlen(b), i, j;

	if (la > LEN || lb > LEN)
		return LEN;
	for (i = 0; i <= la; i++)
		d[i][0] = i;
	for (j = 0; j <= lb; j++)
		d[0][j] = j;
	for (i = 1; i <= la; i++) {
		for (j = 1; j <= lb; j++) {
			unsigned int best = d[i - 1][j - 1] +
					    (a[i - 1] != b[j - 1]);

			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[la][lb];
}

static bool is_among(const char *word, const char *const *known)
{
	for (; *known; known++)
		if (!strcmp(word, *known))
			return true;
	return false;
}

bool suggest_may(const char *word)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(never); i++)
		if (!strcmp(word, never[i]))
			return false;
	return true;
}

const char *suggest(const char *word, const char *const *known)
{
	size_t len = strlen(word), i;
	unsigned int limit = len <= 2 ? 1 : len <= 7 ? 2 : 3;
	const char *found = NULL;

	for (i = 0; i < ARRAY_SIZE(synonyms); i++)
		if (!strcmp(word, synonyms[i][0]) &&
		    is_among(synonyms[i][1], known))
			return synonyms[i][1];
	for (; *known; known++) {
		unsigned int d = distance(word, *known);

		/* Replacing every letter is not a typing error. */
		if (d > limit || d >= strlen(*known))
			continue;
		if (!found || d < limit) {
			limit = d;
			found = *known;
		}
	}
	/* Not the next one instead: it is not what was meant. */
	return found && suggest_may(found) ? found : NULL;
}

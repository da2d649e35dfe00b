// SPDX-License-Identifier: GPL-2.0
/* What follows a drain, in words. */
#include <stddef.h>
#include <string.h>

#include "args.h"
#include "then.h"

/* The order of enum l4lb_then. */
static const char *const names[] = { "stay", "delete", "reset", "move", NULL };

const char *then_name(uint32_t then)
{
	return then < ARRAY_SIZE(names) ? names[then] : NULL;
}

int parse_then(const char *word, const char *object, uint32_t *then)
{
	uint32_t i;

	for (i = 0; names[i]; i++) {
		if (strcmp(names[i], word))
			continue;
		*then = i;
		return 0;
	}
	return arg_unknown(object, "end of a drain", word, names);
}

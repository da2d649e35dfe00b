/* SPDX-License-Identifier: GPL-2.0 */
/* Files that the user names: the whole text in memory. */
#ifndef IPVSCTL_SOURCE_H
#define IPVSCTL_SOURCE_H

#include <stddef.h>

struct source {
	const char *name;	/* for messages */
	char *text;		/* with a NUL behind it */
	size_t len;
};

/* Reads @file, "-" for standard input, of at most @max bytes; returns an exit
 * code. A file that changes meanwhile is refused.
 */
int source_read(const char *file, size_t max, struct source *s);
/* The failure of that: for a caller that knows a smaller limit later. */
int source_too_large(const struct source *s, size_t max);
void source_free(struct source *s);

#endif

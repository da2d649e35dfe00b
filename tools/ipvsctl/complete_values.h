/* SPDX-License-Identifier: GPL-2.0 */
/* What there is, for completion: names that the kernel has, and of network namespaces.
 * Reading them changes nothing: no module is loaded for it.
 */
#ifndef IPVSCTL_COMPLETE_VALUES_H
#define IPVSCTL_COMPLETE_VALUES_H

#include <stddef.h>

struct values_line {
	char *const *word;	/* before the one that is wanted */
	int count;
	/* @help may be NULL; both are valid during the call only. */
	void (*value)(const char *word, const char *help, void *arg);
	void *arg;
};

/* Calls @line's function for each value that the word @name of a usage, not NUL-terminated,
 * can have here. Without a module, or without the right to ask, there are none.
 */
void values_each(const char *name, size_t len, const struct values_line *line);

#endif

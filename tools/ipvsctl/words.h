/* SPDX-License-Identifier: GPL-2.0 */
/* Words that usages write in upper case, and their meaning. */
#ifndef IPVSCTL_WORDS_H
#define IPVSCTL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Is @word one of the lower-case words of @usage, or of the words it names? */
bool usage_has(const char *usage, const char *word);

/* The grammar of @name, a word in upper case and not NUL-terminated; NULL: any one word. */
const char *words_grammar(const char *name, size_t len);

/* Prints what the words of @usage mean, and the words of these,
 * below a heading. All words if @usage is NULL.
 */
void words_help(const char *usage);

#endif

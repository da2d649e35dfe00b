/* SPDX-License-Identifier: GPL-2.0 */
/* What a wrong word may have meant. */
#ifndef IPVSCTL_SUGGEST_H
#define IPVSCTL_SUGGEST_H

#include <stdbool.h>

/* The member of NULL-terminated @known closest to @word, or one that means the
 * same; NULL if none is close enough to be what was meant. It is never a word
 * that lets more packets in or deletes something: such a word must be the
 * user's own.
 */
const char *suggest(const char *word, const char *const *known);

/* May advice have the word in it, which the user has not written there? */
bool suggest_may(const char *word);

#endif

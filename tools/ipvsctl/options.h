/* SPDX-License-Identifier: GPL-2.0 */
/* Options: words that begin with a dash. */
#ifndef IPVSCTL_OPTIONS_H
#define IPVSCTL_OPTIONS_H

#include "opt.h"

struct args;

/* Splits argv into options (to opt) and words (to @words). */
int options_parse(int argc, char **argv, struct args *words);

/* The first option that nobody knows, or NULL. It is an error, but which words
 * it may have meant depends on the command.
 */
const char *options_unknown(void);

/* Fails when an option was given that the command @verb, with this usage, does
 * not take; @allowed: the OPT_* it does.
 */
int options_allow(const char *verb, const char *usage, unsigned int allowed);

/* The value, as in a usage, that the option @word wants from the next word, or NULL. What is
 * in brackets may be missing.
 */
const char *options_value(const char *word);

/* Calls @fn for each option that all verbs or those with these OPT_* take. */
void options_each(unsigned int verbs,
		  void (*fn)(const char *name, const char *help, void *arg),
		  void *arg);

/* Prints the options that only the verbs with these OPT_* take. */
void options_of(unsigned int verbs);

/* Prints the options part of the help text. */
void options_help(void);

#endif

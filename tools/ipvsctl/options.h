/* SPDX-License-Identifier: GPL-2.0 */
/* Options: words that begin with a dash. */
#ifndef IPVSCTL_OPTIONS_H
#define IPVSCTL_OPTIONS_H

#include "opt.h"

struct args;

/* Splits argv into options (to opt) and words (to @words). */
int options_parse(int argc, char **argv, struct args *words);

/* Fails when an option was given that @verb does not take. */
int options_allow(const char *verb, unsigned int allowed);

/* Prints the options that only the verbs with these OPT_* take. */
void options_of(unsigned int verbs);

/* Prints the options part of the help text. */
void options_help(void);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* Values of schedulers' options that are written as words, or are secrets. */
#ifndef IPVSCTL_OPTWORD_H
#define IPVSCTL_OPTWORD_H

#include <stdbool.h>

struct svc_option;

/* May its value be another word than a number? */
bool option_has_words(const char *name);

/* Reads @word, the value of the option @o->name, into @o; returns an exit code.
 * @object: the service, for messages.
 */
int option_word_parse(struct svc_option *o, const char *word, const char *object);

/* The value as option_word_parse() reads it; of a key the fingerprint. A program has its
 * path, if that is known.
 */
const char *option_word(const struct svc_option *o);
/* The same, but of a program path and number. */
const char *option_exact(const struct svc_option *o);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* Finds and runs the commands of the table that main.c has. */
#ifndef IPVSCTL_COMMANDS_H
#define IPVSCTL_COMMANDS_H

struct args;
struct noun;
struct verb;

/* Sets the table: NULL-terminated, the noun of an empty command line first. */
void commands_use(const struct noun *const *table);

/* The object or the verb that @word names, or NULL; aliases count. */
const struct noun *commands_noun(const char *word);
const struct verb *commands_verb(const struct noun *noun, const char *word);

/* Runs the command that the words name; returns an exit code. */
int commands_run(struct args *words);

/* Prints the help that the words name: OBJECT, OBJECT VERB, or all. */
int commands_help(struct args *words);

#endif

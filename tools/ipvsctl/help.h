/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IPVSCTL_HELP_H
#define IPVSCTL_HELP_H

struct noun;
struct args;

/* Print all help, or that of @noun, or only of its @verb if not NULL. */
void help_all(const struct noun *const *nouns);
void help_noun(const struct noun *noun, const char *verb);

#endif

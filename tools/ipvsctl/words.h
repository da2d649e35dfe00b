/* SPDX-License-Identifier: GPL-2.0 */
/* Words that usages write in upper case, and their meaning. */
#ifndef IPVSCTL_WORDS_H
#define IPVSCTL_WORDS_H

/* Prints what the words of @usage mean, and the words of these. All words if
 * @usage is NULL.
 */
void words_help(const char *usage);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* Completion for shells, from the table of commands: ipvsctl.bash, ipvsctl.zsh and
 * ipvsctl.fish run "ipvsctl __complete WORD...", whose last word is the one at the cursor.
 */
#ifndef IPVSCTL_COMPLETE_H
#define IPVSCTL_COMPLETE_H

struct args;
struct noun;

/* Prints "words", or "files" if the names of files fit, too; then a line for each word that
 * can stand there: the word, a tab, and what it is. A line that is wrong has no such words.
 * Changes nothing, opens no file of the line's, and says nothing on stderr.
 */
int complete_run(const struct noun *const *nouns, struct args *line);

#endif

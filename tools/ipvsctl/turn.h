/* SPDX-License-Identifier: GPL-2.0 */
/* One apply or rollback at a time in a network namespace, and none while a change waits
 * for its confirmation. The turn is a locked file in /run/ipvsctl: it ends with the
 * last process that has it, however that dies.
 */
#ifndef IPVSCTL_TURN_H
#define IPVSCTL_TURN_H

#include <stddef.h>

/* Waits for another apply, but not for a confirmation. @must: fail if there can be no
 * turn, because /run cannot be written. Returns an exit code.
 */
int turn_take(int must);

/* Listens for turn_ask(); a descriptor, or -1. */
int turn_listen(void);
/* Takes the socket away. */
void turn_deaf(int fd);

/* Sends @word to the process that waits for a confirmation and reads its answer;
 * 0, or -1 if there is none; errno is EACCES if the caller may not ask.
 */
int turn_ask(const char *word, char *answer, size_t size);

#endif

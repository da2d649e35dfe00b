/* SPDX-License-Identifier: GPL-2.0 */
/* `apply --confirm`: the process that applies is a session of its own and stays until
 * the change is confirmed or taken back; the process that the user sees only waits for
 * its result. So the end of the terminal, of the shell or of that process, by whatever
 * signal, changes nothing.
 */
#ifndef IPVSCTL_GUARD_H
#define IPVSCTL_GUARD_H

#include <stdbool.h>

struct undo;

/* Returns true in the process that is to apply. In the other it returns false, when
 * the first has ended or waits, with the exit code in *rc.
 */
bool guard_begin(int *rc);

/* In the process that has applied: lets the other one go, waits for confirmation or
 * until opt.confirm_secs have passed, and takes the change back. Does not return.
 */
void guard_wait(struct undo *u) __attribute__((noreturn));

#endif

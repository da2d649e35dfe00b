/* SPDX-License-Identifier: GPL-2.0 */
/* Which scheduling algorithms there are. */
#ifndef IPVSCTL_SCHEDULER_H
#define IPVSCTL_SCHEDULER_H

#include <stdbool.h>

/* True if the backend has it, loaded or on disk. */
bool scheduler_known(const char *name);

/* "not found", with those there are and the one that may have been meant. */
int scheduler_missing(const char *object, const char *name);

#endif

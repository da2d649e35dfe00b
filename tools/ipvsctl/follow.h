/* SPDX-License-Identifier: GPL-2.0 */
/* Prints what comes, until SIGINT or SIGTERM, or until nobody reads the output. */
#ifndef IPVSCTL_FOLLOW_H
#define IPVSCTL_FOLLOW_H

#include <stdbool.h>

/* SIGINT and SIGTERM end follow() from now on. */
void follow_begin(void);

/* Calls @read, and again whenever @fd has something, until it returns false or an
 * error is in *@err. Returns *@err, or 0 after a signal, or 1 if nobody reads the
 * output any more.
 */
int follow(int fd, bool (*read)(int *err, void *arg), void *arg);

/* Says why it failed; @what was being done. Returns an exit code. */
int follow_failed(int err, const char *what);

/* The time as 2026-01-31T12:00:00.123456+0100. Valid until the next call. */
const char *follow_time(long long nanoseconds);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* --watch: a listing that is printed again and again. */
#ifndef IPVSCTL_REPEAT_H
#define IPVSCTL_REPEAT_H

#include <stdbool.h>

/* Calls @print once, or with --watch until it fails or the user interrupts,
 * which is no failure.
 */
int repeat_run(int (*print)(void *arg), void *arg);

struct pollfd;
struct timespec;

/* From now on SIGINT and SIGTERM, the first time, only make repeat_stopped()
 * true.
 */
void repeat_catch(void);
bool repeat_stopped(void);
/* ppoll(), which such a signal ends even if it comes just before. */
int repeat_poll(struct pollfd *fds, unsigned int n, const struct timespec *left);

/* repeat_run() shall not call again. */
void repeat_stop(void);

/* Seconds since 1970, with milliseconds. */
double repeat_time(void);

#endif

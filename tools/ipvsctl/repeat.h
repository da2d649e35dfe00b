/* SPDX-License-Identifier: GPL-2.0 */
/* --watch: a listing that is printed again and again. */
#ifndef IPVSCTL_REPEAT_H
#define IPVSCTL_REPEAT_H

/* Calls @print once, or with --watch until it fails or the user interrupts,
 * which is no failure.
 */
int repeat_run(int (*print)(void *arg), void *arg);

/* Seconds since 1970, with milliseconds. */
double repeat_time(void);

#endif

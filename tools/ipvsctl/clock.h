/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IPVSCTL_CLOCK_H
#define IPVSCTL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Milliseconds of @clock, such as CLOCK_MONOTONIC. */
int64_t clock_ms(clockid_t clock);

#endif

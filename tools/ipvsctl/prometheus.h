/* SPDX-License-Identifier: GPL-2.0 */
/* The text format that Prometheus reads. */
#ifndef IPVSCTL_PROMETHEUS_H
#define IPVSCTL_PROMETHEUS_H

#include <stdbool.h>

struct snapshot;

/* Prints every metric to stdout; those of real servers if @servers, and those
 * of the whole namespace if @whole.
 */
void prometheus_print(const struct snapshot *s, bool servers, bool whole);

#endif

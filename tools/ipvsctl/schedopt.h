/* SPDX-License-Identifier: GPL-2.0 */
/* A service's flags and options for its scheduler. */
#ifndef IPVSCTL_SCHEDOPT_H
#define IPVSCTL_SCHEDOPT_H

#include <stdbool.h>

struct service;

/* Checks the flags and options of @svc against those that the kernel lists for
 * its scheduler; returns an exit code. Unknown flags are an error if
 * @flags_named; else they come from another scheduler and are dropped. Options
 * at their default are dropped, too: they need not be set.
 *
 * In-tree ip_vs lists none. There all flags pass, and options are an error.
 */
int scheduler_settle(struct service *svc, bool flags_named);

#endif

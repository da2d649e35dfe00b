/* SPDX-License-Identifier: GPL-2.0 */
/* What a service may ask of its scheduler. */
#ifndef IPVSCTL_SCHEDOPT_H
#define IPVSCTL_SCHEDOPT_H

#include <stdbool.h>

struct service;

/* Checks the scheduler's flags and options of @svc against what its scheduler
 * has, as the kernel tells; returns an exit code. Flags it does not have are
 * an error if @flags_named, else they were its predecessor's and are dropped.
 * Options that have their default are dropped, too: they need not be set.
 *
 * In-tree ip_vs does not tell. There flags pass, and options are an error.
 */
int scheduler_settle(struct service *svc, bool flags_named);

#endif

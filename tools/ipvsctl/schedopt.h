/* SPDX-License-Identifier: GPL-2.0 */
/* A service's flags and options for its scheduler. */
#ifndef IPVSCTL_SCHEDOPT_H
#define IPVSCTL_SCHEDOPT_H

struct service;

/* What to do with flags that a scheduler does not have: the user asks for them;
 * they come from another scheduler; or they were saved, since another program
 * had set them.
 */
enum foreign_flags { FOREIGN_REFUSED, FOREIGN_DROPPED, FOREIGN_KEPT };

/* Checks the flags and options of @svc against those that the kernel lists for
 * its scheduler; returns an exit code. Options at their default are dropped:
 * they need not be set.
 *
 * In-tree ip_vs lists none. There all flags pass, and options are an error.
 */
int scheduler_settle(struct service *svc, enum foreign_flags foreign);

#endif

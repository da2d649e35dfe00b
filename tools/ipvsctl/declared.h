/* SPDX-License-Identifier: GPL-2.0 */
/* A configuration file beside the kernel's configuration: what apply and diff share. */
#ifndef IPVSCTL_DECLARED_H
#define IPVSCTL_DECLARED_H

#include <stdbool.h>

#include "declare.h"
#include "plan.h"
#include "source.h"

struct args;
struct undo;

struct declared {
	struct source source;
	struct declaration file;
	struct plan plan;
	struct kern_timeouts timeouts;	/* the kernel's */
	bool timeouts_differ;
	struct xdp_change xdp;		/* of devices */
};

/* Reads the file that the words name, then the kernel; checks both.
 * Returns an exit code; declared_close() in any case.
 */
int declared_open(struct declared *d, struct args *a, const char *verb);
void declared_close(struct declared *d);

/* Sends the difference, or prints it with --dry-run. */
int declared_apply(struct declared *d);

/* What takes it back; walks the plan. */
void declared_undo(struct declared *d, struct undo *u);

/* Of the last walk: is there anything to do? */
bool declared_differs(const struct declared *d);

#endif

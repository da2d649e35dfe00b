/* SPDX-License-Identifier: GPL-2.0 */
/* What takes an apply back: the services that it changed, as they were before and as
 * it left them. Services that it did not change are not in it, and stay.
 */
#ifndef IPVSCTL_UNDO_H
#define IPVSCTL_UNDO_H

#include <stdbool.h>

#include "kern.h"
#include "model.h"
#include "xdp_set.h"

struct plan;

struct undo {
	struct service_list before, after;	/* sorted */
	struct kern_timeouts had, set;		/* 0: not changed */
	struct xdp_change xdp;			/* as it was applied */
	bool applied;	/* the kernel has done it */
	bool xdp_stays;	/* undo_run() could not set back all devices */
	bool keys;	/* undo_settle() has read numbers of keys */
};

/* Of a plan that was not sent yet; @u shares its services, and is freed before it. */
void undo_of_plan(struct undo *u, struct plan *p);
void undo_free(struct undo *u);

/* Whatever else would be lost when the apply takes effect; returns an exit code. */
int undo_hold(const struct undo *u);

/* Once the plan was sent: the kernel has made numbers of the keys in it. Returns an
 * exit code.
 */
int undo_settle(struct undo *u);

/* Is the kernel as the apply left it? */
int undo_matches(struct undo *u, bool *same);

/* Refuses if it is not; prints the difference. */
int undo_check(struct undo *u);

/* Sets the services back as one transaction, then XDP, device by device; @p counts
 * what was done.
 */
int undo_run(struct undo *u, struct plan *p);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* What must be done so that the kernel has what a file names: the difference between
 * two configurations, and the way to send it.
 */
#ifndef IPVSCTL_PLAN_H
#define IPVSCTL_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "kern.h"
#include "model.h"
#include "tally.h"

struct source;

enum plan_step { PLAN_SAME, PLAN_ADD, PLAN_CHANGE, PLAN_REMOVE };

/* A service, if @srv and @old_srv are NULL, or one of its servers. @svc and @srv are
 * what is wanted, @old and @old_srv what is there; NULL if there is none.
 */
struct plan_item {
	enum plan_step step;
	const struct service *svc, *old;
	const struct server *srv, *old_srv;
	bool loses;	/* servers of this service are removed */
};

struct plan {
	struct service_list want, have;
	const char *file;		/* for messages */
	const struct source *source;	/* of a file in YAML, else NULL */
	bool prune;			/* remove what is not wanted */
	bool (*may_prune)(const void *arg, const struct service *svc);
	const void *arg;
	struct kern_timeouts timeouts, timeouts_now;	/* to be set; 0 stays; what there is */
	struct tally services, servers;
	size_t done;			/* changes */
};

/* Reads the kernel's configuration; the wire must be open. Returns an exit code. */
int plan_read(struct plan *p);

/* Each scheduler must be in use, loaded or on disk, and have the options of the
 * file. This is checked before anything is sent: in-tree ip_vs would stop half-way.
 */
int plan_check(struct plan *p);

/* Adds to the recorded failure where the file names @svc, or its @srv if that is not NULL. */
void plan_place(const struct plan *p, const struct service *svc,
		const struct server *srv);

/* Calls @see for each item, services before their servers, removed services last,
 * and counts. Stops if it does not return RC_OK.
 */
typedef int (*plan_see)(struct plan *p, const struct plan_item *item, void *arg);
int plan_walk(struct plan *p, plan_see see, void *arg);

/* Sends the changes: l4lb gets one message and makes all or none; ip_vs gets a
 * command for each, timeouts first, removals last. With --dry-run they are printed.
 */
int plan_apply(struct plan *p, const char *again);

/* Have both the same settings? */
bool plan_same_server(const struct server *a, const struct server *b);

void plan_free(struct plan *p);

#endif

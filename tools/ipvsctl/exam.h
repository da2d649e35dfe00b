/* SPDX-License-Identifier: GPL-2.0 */
/* What the checks of `ipvsctl doctor` look at, read once. */
#ifndef IPVSCTL_EXAM_H
#define IPVSCTL_EXAM_H

#include <stdbool.h>
#include <stddef.h>

#include "kern_net.h"
#include "kern_sync.h"
#include "model.h"

struct svc_id;

/* An address of services or of servers, and the way there. */
struct exam_place {
	uint16_t af;
	struct ip addr;
	struct net_route route;
	const struct service *svc;	/* one that has it */
	const struct server *srv;	/* likewise; NULL for a VIP */
};

struct places {
	struct exam_place *v;	/* sorted by family and address */
	size_t n;
};

struct exam {
	bool module;		/* a module answers; else there is only @net */
	struct service_list list;
	struct net net;
	struct places vips, servers;
	struct sync_daemon daemons[SYNC_DAEMONS_MAX];
	int ndaemons;
};

/* Reads the service @only, or all if it is NULL. Returns an exit code; without a
 * module that is RC_OK. exam_free() in any case.
 */
int exam_read(struct exam *e, const struct svc_id *only);
void exam_free(struct exam *e);

/* The way to @srv. */
const struct net_route *exam_route(const struct exam *e,
				   const struct server *srv);

/* Its VIP may be on another machine: this one is one of a pair. */
bool exam_is_paired(const struct exam *e);

/* "tcp 192.0.2.10:80: server 10.0.0.11:80"; valid until the next call. */
const char *exam_server_text(const struct service *svc,
			     const struct server *srv);

/* Reads a number from a file below /proc; false if it is not there. */
bool exam_number(const char *path, uint64_t *value);

#endif

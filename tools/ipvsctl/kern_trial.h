/* SPDX-License-Identifier: GPL-2.0 */
/* Trials of schedulers: the family L4LB, which in-tree ip_vs lacks. */
#ifndef IPVSCTL_KERN_TRIAL_H
#define IPVSCTL_KERN_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ident.h"

/* What the flows of a trial are; see L4LB_CMD_TRY_SCHEDULER in l4lb.h. */
struct trial_flows {
	uint32_t flows, clients, hold, seed;
	bool live;		/* of clients that have connections */
	bool lacks;		/* a real server, .without */
	struct srv_id without;	/* with a port */
};

struct trial_server {
	uint16_t af, port;
	struct ip addr;
	uint32_t weight;
	uint64_t chosen;	/* so often */
};

struct trial {
	char scheduler[16];
	uint32_t flows;		/* that began before the kernel's time was up */
	uint32_t live;		/* connections whose clients they were of, if .live */
	uint32_t refused;
	bool compares;		/* .moved has a meaning */
	uint32_t lost, moved;
	uint32_t cost_50, cost_99;	/* nanoseconds */
	struct trial_server *servers;
	size_t nservers;
	bool incomplete;	/* there was no memory for more servers */
};

/* Asks what @scheduler would choose. Returns 0 or -errno and records no failure; -EOPNOTSUPP
 * without the family. trial_free() frees what @trial has, in any case.
 */
int kern_trial(const struct svc_id *id, const char *scheduler,
	       const struct trial_flows *flows, struct trial *trial);
void trial_free(struct trial *trial);

#endif

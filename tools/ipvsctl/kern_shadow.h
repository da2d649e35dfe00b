/* SPDX-License-Identifier: GPL-2.0 */
/* What a service's shadow has counted: the family L4LB, which in-tree ip_vs lacks. */
#ifndef IPVSCTL_KERN_SHADOW_H
#define IPVSCTL_KERN_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ident.h"
#include "kern_l4lb.h"

/* Connections that a real server has got, or would have. */
struct shadow_load {
	uint64_t conns;		/* since the counters were 0 */
	uint32_t active, inactive;	/* now */
};

struct shadow_server {
	uint16_t af, port;
	struct ip addr;
	uint32_t weight;
	struct shadow_load real, shadow;
};

/* See L4LB_CMD_GET_SHADOW in l4lb.h. */
struct shadow {
	char scheduler[16];
	uint64_t age;		/* milliseconds */
	uint64_t choices, agreed, refused;
	struct shadow_server *servers;
	size_t nservers;
	struct sched_info sched;	/* of its options only what it counts */
	bool incomplete;	/* there was no memory for more servers */
};

/* Returns 0 or -errno and records no failure; -EOPNOTSUPP without the family, -ENOENT
 * without a shadow. shadow_free() frees what @shadow has, in any case.
 */
int kern_shadow(const struct svc_id *id, struct shadow *shadow);
void shadow_free(struct shadow *shadow);

#endif

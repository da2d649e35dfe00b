/* SPDX-License-Identifier: GPL-2.0 */
/* All that can be measured, read at one time. */
#ifndef IPVSCTL_SNAPSHOT_H
#define IPVSCTL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "kern_peer.h"
#include "model.h"
#include "proc.h"

struct filter;

struct snapshot {
	uint64_t when_ms;	/* CLOCK_MONOTONIC, half-way through reading */
	struct service_list list;
	struct counters total;		/* of the namespace */
	struct proc_counter *counters;	/* as proc_counters() gives them */
	size_t ncounters;
	bool has_conn_max;
	uint64_t conn_max;
	struct sync_peer peers[L4LB_PEERS_MAX];
	int npeers;
};

/* The services that pass @f, and all the rest. Fails like filter_read(). */
int snapshot_read(const struct filter *f, struct snapshot *s);
void snapshot_free(struct snapshot *s);

enum counter_kind {
	COUNTER_DROPPED_PACKETS, COUNTER_DROPPED_CONNS, COUNTER_FAST_PATH,
	COUNTER_OTHER
};

/* What counter number @i counts. */
enum counter_kind snapshot_counter_kind(const struct snapshot *s, size_t i);

#endif

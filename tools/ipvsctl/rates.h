/* SPDX-License-Identifier: GPL-2.0 */
/* What happened a second between two snapshots. */
#ifndef IPVSCTL_RATES_H
#define IPVSCTL_RATES_H

#include <stddef.h>

struct snapshot;

struct rate {
	double conns, inpkts, outpkts, inbytes, outbytes;
	double p99;	/* of answers: microseconds; 0: unknown, or none came */
};

struct rates {
	struct rate total;		/* of the namespace */
	struct rate *services;		/* of snapshot.list.v[i] */
	struct rate *servers;		/* of all, one service's after the other's */
	size_t *first;			/* service's first one in .servers */
	double *counters;		/* of snapshot.counters[i] */
};

/* @before: NULL for none. What has no earlier value, or has been set to 0 since,
 * gets the rate that the kernel knows, which is an average of some seconds;
 * counters without an earlier value get 0. Both snapshots must be in the order
 * of service_list_sort().
 */
void rates_between(const struct snapshot *before, const struct snapshot *now,
		   struct rates *r);
void rates_free(struct rates *r);

#endif

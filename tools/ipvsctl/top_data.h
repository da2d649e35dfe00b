/* SPDX-License-Identifier: GPL-2.0 */
/* What `ipvsctl top` shows: the last two snapshots, and what follows from them. */
#ifndef IPVSCTL_TOP_DATA_H
#define IPVSCTL_TOP_DATA_H

#include <stdbool.h>

#include "filter.h"
#include "ranking.h"
#include "rates.h"
#include "snapshot.h"

struct top_data {
	struct filter filter;		/* which services are read */
	struct rank_by by;
	unsigned int secs;		/* between two snapshots */
	bool paused;

	struct snapshot before, now;
	bool has_before;
	struct rates rates;
	struct ranking ranking;
};

/* Reads the next snapshot and arranges it; fails like snapshot_read(). */
int top_data_read(struct top_data *d);
/* Arranges the same again, after a change of .by. */
void top_data_arrange(struct top_data *d);
void top_data_free(struct top_data *d);

#endif

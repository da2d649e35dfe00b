// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "err.h"
#include "filter.h"
#include "kern_latency.h"
#include "refuse.h"
#include "snapshot.h"

static void take_counter(const struct proc_counter *c, void *arg)
{
	struct snapshot *s = arg;
	struct proc_counter *more;

	more = reallocarray(s->counters, s->ncounters + 1, sizeof(*more));
	if (!more)
		return;
	s->counters = more;
	more[s->ncounters++] = *c;
}

static int read_latency(struct service_list *list, const struct filter *f)
{
	int err = kern_latency(list, f->by_id ? &f->id : NULL);

	return err ? refuse(err, NULL, "the latency of real servers") : RC_OK;
}

int snapshot_read(const struct filter *f, struct snapshot *s)
{
	uint64_t before = (uint64_t)clock_ms(CLOCK_MONOTONIC);
	int rc;

	memset(s, 0, sizeof(*s));
	rc = filter_read(f, &s->list);
	s->when_ms = before + ((uint64_t)clock_ms(CLOCK_MONOTONIC) - before) / 2;
	if (!rc)
		rc = read_latency(&s->list, f);
	if (!rc)
		rc = proc_totals(&s->total);
	if (!rc)
		rc = proc_counters(take_counter, s);
	if (!rc)
		s->has_conn_max = proc_setting("conn_max", &s->conn_max);
	if (!rc)
		s->npeers = kern_peers(s->peers);
	/* Without the family, or without the right to ask, there are none. */
	if (s->npeers < 0)
		s->npeers = 0;
	if (rc)
		snapshot_free(s);
	return rc;
}

void snapshot_free(struct snapshot *s)
{
	service_list_free(&s->list);
	free(s->counters);
	memset(s, 0, sizeof(*s));
}

/* The reasons of drops come first in the file; more of them may be added there. */
enum counter_kind snapshot_counter_kind(const struct snapshot *s, size_t i)
{
	const char *name = s->counters[i].name;
	size_t first;

	for (first = 0; first < s->ncounters; first++)
		if (!strcmp(s->counters[first].name, "fast"))
			break;
	if (proc_is_fast_path(name))
		return COUNTER_FAST_PATH;
	if (i > first || !strncmp(name, "sync_", 5))
		return COUNTER_OTHER;
	if (!strcmp(name, "drop_entry") || !strcmp(name, "evicted"))
		return COUNTER_DROPPED_CONNS;
	return COUNTER_DROPPED_PACKETS;
}

// SPDX-License-Identifier: GPL-2.0
#include "err.h"
#include "top_data.h"

static void forget(struct top_data *d)
{
	rank_free(&d->ranking);
	rates_free(&d->rates);
}

int top_data_read(struct top_data *d)
{
	struct snapshot next;
	int rc = snapshot_read(&d->filter, &next);

	if (rc)
		return rc;
	forget(d);
	snapshot_free(&d->before);
	d->before = d->now;
	d->has_before = d->now.when_ms;
	d->now = next;
	rates_between(d->has_before ? &d->before : NULL, &d->now, &d->rates);
	rank(&d->now, &d->rates, &d->by, &d->ranking);
	return RC_OK;
}

void top_data_arrange(struct top_data *d)
{
	rank_free(&d->ranking);
	rank(&d->now, &d->rates, &d->by, &d->ranking);
}

void top_data_free(struct top_data *d)
{
	forget(d);
	snapshot_free(&d->before);
	snapshot_free(&d->now);
}

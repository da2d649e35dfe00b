// SPDX-License-Identifier: GPL-2.0
/* Connections, by netlink if the kernel has the command, else from /proc. */
#include <errno.h>

#include "backend.h"
#include "conn_filter.h"
#include "conn_walk.h"
#include "err.h"
#include "ident.h"
#include "kern_conn.h"
#include "proc.h"
#include "refuse.h"
#include "wire.h"

struct reader {
	const struct conn_filter *filter;
	bool (*fn)(const struct conn *c, void *arg);
	void *arg;
};

static bool filter_proc(const struct conn *c, void *arg)
{
	struct reader *r = arg;

	return !conn_passes(r->filter, c) || r->fn(c, r->arg);
}

static int walk_proc(struct reader *r)
{
	const struct svc_id *service = &r->filter->service;
	int rc;

	if (!r->filter->by_service || !service->fwmark)
		return proc_conns(filter_proc, r);
	rc = fail(RC_USAGE, svc_text(service),
		  "the kernel's list does not say which mark a connection belongs to");
	hint("try: conn show server SRV");
	return rc;
}

int conn_walk(const struct conn_filter *filter,
	      bool (*fn)(const struct conn *c, void *arg), void *arg)
{
	struct reader r = { .filter = filter, .fn = fn, .arg = arg };
	int err, rc;

	if (!backend_is_l4lb())
		return walk_proc(&r);
	rc = wire_open();
	if (rc)
		return rc;
	err = kern_conns(filter, fn, arg);
	/* Every kernel has the file, and every user may read it. */
	if (err == -EOPNOTSUPP || err == -EPERM)
		return walk_proc(&r);
	return err ? refuse(err, NULL, "listing the connections") : RC_OK;
}

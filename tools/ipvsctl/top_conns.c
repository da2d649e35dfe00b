// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "conn_walk.h"
#include "err.h"
#include "ident.h"
#include "kern_conn.h"
#include "proc.h"
#include "top_conns.h"

struct reading {
	struct top_conns *conns;
	size_t max;
};

static void add_line(struct top_conns *c, char *line)
{
	if (!line)
		err(3, "out of memory");
	c->lines[c->n++] = line;
}

static bool take(const struct conn *conn, void *arg)
{
	struct reading *r = arg;
	char *line;

	if (r->conns->n == r->max)
		return false;
	if (asprintf(&line, "%-24s %-24s %-11s %6u s%s",
		     ip_port_text(conn->af, &conn->client, conn->client_port),
		     ip_port_text(conn->server_af, &conn->server,
				  conn->server_port),
		     conn->state, conn->expires,
		     conn->template ? "  template" : "") < 0)
		line = NULL;
	add_line(r->conns, line);
	return r->conns->n < r->max;
}

void top_conns_free(struct top_conns *c)
{
	while (c->n)
		free(c->lines[--c->n]);
	free(c->lines);
	memset(c, 0, sizeof(*c));
}

int top_conns_read(struct top_conns *c, const struct svc_id *id,
		   const struct srv_id *srv, size_t max)
{
	struct conn_filter f = { .by_service = true, .service = *id };
	struct reading r = { .conns = c, .max = max };
	int rc;

	top_conns_free(c);
	c->lines = calloc(max + 2, sizeof(*c->lines));
	if (!c->lines)
		err(3, "out of memory");
	snprintf(c->title, sizeof(c->title), "CLIENTS OF %s%s%s", svc_text(id),
		 srv ? " AT " : "",
		 srv ? ip_port_text(srv->af, &srv->addr, srv->port) : "");
	if (!backend_is_l4lb() && id->fwmark) {
		add_line(c, strdup("ip_vs does not say which mark a connection belongs to"));
		return RC_OK;
	}
	if (srv) {
		f.by_server = true;
		f.server = *srv;
	}
	rc = conn_walk(&f, take, &r);
	if (!rc && !c->n)
		add_line(c, strdup("no connections"));
	return rc;
}

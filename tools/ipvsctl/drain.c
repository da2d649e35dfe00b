// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl server drain` and `undrain`. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "backend.h"
#include "drain.h"
#include "drain_note.h"
#include "err.h"
#include "kern.h"
#include "lookup.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "svcopt.h"
#include "wire.h"

enum { POLL_MS = 500 };

static uint64_t left(const struct server *srv)
{
	return (uint64_t)srv->active + srv->inactive + srv->persistent;
}

static int wait_idle(const struct svc_id *id, const struct srv_id *name,
		     struct server *srv)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	uint64_t polls = (uint64_t)opt.wait_secs * 1000 / POLL_MS;
	int rc = RC_OK;

	while (!rc && left(srv) && polls--) {
		nanosleep(&pause, NULL);
		rc = server_lookup(id, name, srv);
	}
	if (rc || !left(srv))
		return rc;
	rc = fail(RC_TIMEOUT, svc_text(id),
		  "server %s: after %u s still %u active, %u inactive, %u persistent connections",
		  ip_port_text(srv->af, &srv->addr, srv->port), opt.wait_secs,
		  srv->active, srv->inactive, srv->persistent);
	hint("it stays drained; try: a longer --wait");
	return rc;
}

static int report(const struct svc_id *id, const struct server *srv,
		  uint32_t was)
{
	const char *name = ip_port_text(srv->af, &srv->addr, srv->port);
	json_t *doc, *drain;

	if (!opt.json) {
		if (!opt.quiet)
			printf("%s %s: weight %u -> 0; %u active, %u inactive, %u persistent\n",
			       svc_text(id), name, was, srv->active,
			       srv->inactive, srv->persistent);
		return RC_OK;
	}
	doc = doc_new();
	drain = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}",
			  "service", svc_word(id), "server", name,
			  "weight_before", (json_int_t)was,
			  "active", (json_int_t)srv->active,
			  "inactive", (json_int_t)srv->inactive,
			  "persistent", (json_int_t)srv->persistent);
	json_object_set_new(doc, "drain", drain);
	return print_doc(doc);
}

static int cannot_kill(const char *object)
{
	int rc = fail(RC_BACKEND, object,
		      "--kill: the module %s has no command that drops connections",
		      backend_name());

	hint("try: drain --wait, then server delete");
	hint("with net.ipv4.vs.expire_nodest_conn=1, deleting the server ends its connections");
	return rc;
}

int server_drain(struct args *a)
{
	struct srv_id name;
	struct server srv;
	struct svc_id id;
	uint32_t was;
	int err, rc;

	rc = server_words(a, &id, &name);
	if (!rc)
		rc = arg_end(a, svc_text(&id));
	if (!rc)
		rc = wire_open();
	if (!rc && opt.given & OPT_KILL)
		rc = cannot_kill(svc_text(&id));
	if (!rc)
		rc = server_lookup(&id, &name, &srv);
	if (rc)
		return rc;
	was = srv.weight;
	if (was) {
		srv.weight = 0;
		err = kern_server_set(&id, &srv);
		if (err)
			return refuse_server(err, &id, &srv);
		if (!opt.dry_run)
			drain_remember(&id, &srv, was);
	}
	if (opt.dry_run)
		return RC_OK;
	if (opt.given & OPT_WAIT)
		rc = wait_idle(&id, &name, &srv);
	return rc ? rc : report(&id, &srv, was);
}

int server_undrain(struct args *a)
{
	uint32_t weight = 0;
	struct srv_id name;
	struct server srv;
	struct svc_id id;
	int err, rc;

	rc = server_words(a, &id, &name);
	if (!rc && arg_accept(a, "weight"))
		rc = arg_u32(a, svc_text(&id), "weight", RANGE(1, INT32_MAX),
			     &weight);
	if (!rc)
		rc = arg_end(a, svc_text(&id));
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = server_lookup(&id, &name, &srv);
	if (rc)
		return rc;
	if (srv.weight && !weight)
		return RC_OK;	/* it is not drained */
	if (!weight && !drain_recall(&id, &srv, &weight)) {
		rc = fail(RC_USAGE, svc_text(&id),
			  "server %s: its weight from before the drain is not known",
			  ip_port_text(srv.af, &srv.addr, srv.port));
		hint("try: add the weight, such as: weight 1");
		return rc;
	}
	srv.weight = weight;
	err = kern_server_set(&id, &srv);
	return err ? refuse_server(err, &id, &srv) : RC_OK;
}

// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl server drain` and `undrain`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "backend.h"
#include "drain.h"
#include "drain_note.h"
#include "drain_wait.h"
#include "err.h"
#include "kern.h"
#include "kern_conn.h"
#include "kern_drain.h"
#include "lookup.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "svcopt.h"
#include "then.h"
#include "wire.h"
#include "../../kernel/l4lb.h"

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
		      "--kill: the module %s has no command that ends connections",
		      backend_name());

	hint("try: drain --wait, then server delete");
	hint("with net.ipv4.vs.expire_nodest_conn=1, deleting the server ends its connections");
	return rc;
}

/* The connections that are left; after --wait, if it was in vain. */
static int kill_left(const struct svc_id *id, const struct server *srv)
{
	struct conn_filter f = {
		.by_service = true, .service = *id, .by_server = true,
		.server = { .af = srv->af, .port = srv->port, .has_port = true,
			    .addr = srv->addr },
	};
	uint64_t count;
	int err = kern_conns_kill(&f, false, &count);

	if (err)
		return refuse(err, svc_text(id), "ending the connections");
	if (!opt.quiet && !opt.json)
		printf("killed %llu connections\n", (unsigned long long)count);
	return RC_OK;
}

/* In-tree ip_vs: only the weight, which is noted for undrain. */
static int drain_by_weight(const struct svc_id *id, const struct server *srv,
			   uint32_t was)
{
	int err;

	if (opt.given & (OPT_DEADLINE | OPT_THEN)) {
		err = fail(RC_BACKEND, svc_text(id),
			   "the module %s has no drains that end by themselves",
			   backend_name());
		hint_module();
		hint("try: server drain --wait, then server delete");
		return err;
	}
	if (!was)
		return RC_OK;
	err = kern_server_set(id, srv);
	if (!err && !opt.dry_run)
		drain_remember(id, srv, was);
	return err ? refuse_server(err, id, srv) : RC_OK;
}

static int drain(const struct svc_id *id, struct server *srv, uint32_t then,
		 uint32_t was)
{
	int err;

	srv->weight = 0;
	if (!kern_has_drains())
		return drain_by_weight(id, srv, was);
	err = kern_drain(id, srv, opt.deadline_secs, then);
	return err ? refuse_server(err, id, srv) : RC_OK;
}

int server_drain(struct args *a)
{
	uint32_t was, then = L4LB_THEN_STAY;
	struct srv_id name;
	struct server srv;
	struct svc_id id;
	int rc;

	rc = server_words(a, &id, &name);
	if (!rc)
		rc = arg_end(a, svc_text(&id));
	if (!rc && opt.given & OPT_THEN)
		rc = parse_then(opt.then, svc_text(&id), &then);
	if (!rc)
		rc = wire_open();
	if (!rc && opt.given & OPT_KILL && !backend_is_l4lb())
		rc = cannot_kill(svc_text(&id));
	if (!rc)
		rc = server_lookup(&id, &name, &srv);
	if (rc)
		return rc;
	was = srv.weight;
	if (opt.given & OPT_WAIT && !opt.dry_run)
		drain_listen();
	rc = drain(&id, &srv, then, was);
	if (rc || opt.dry_run)
		return rc;
	if (opt.given & OPT_WAIT)
		rc = drain_wait(&id, &srv);
	if (!rc && opt.given & OPT_KILL)
		rc = kill_left(&id, &srv);
	return rc ? rc : report(&id, &srv, was);
}

/* The weight from before the drain; -ENOENT if it is not known. */
static int weight_before(const struct svc_id *id, const struct server *srv,
			 uint32_t *weight)
{
	struct service_list list = { 0 };
	struct service *svc = service_append(&list);
	int err;

	if (!kern_has_drains())
		return drain_recall(id, srv, weight) ? 0 : -ENOENT;
	svc->id = *id;
	*server_append(svc) = *srv;
	err = kern_drains(&list);
	*weight = svc->servers[0].drain.weight;
	service_list_free(&list);
	return err ? err : *weight ? 0 : -ENOENT;
}

static int cannot_recall(int err, const struct svc_id *id,
			 const struct server *srv)
{
	int rc;

	if (err != -ENOENT)
		return refuse(err, svc_text(id), "reading the drains");
	rc = fail(RC_USAGE, svc_text(id),
		  "server %s: its weight from before the drain is not known",
		  ip_port_text(srv->af, &srv->addr, srv->port));
	hint("try: add the weight, such as: weight 1");
	return rc;
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
	err = weight ? 0 : weight_before(&id, &srv, &weight);
	if (err)
		return cannot_recall(err, &id, &srv);
	srv.weight = weight;
	err = kern_server_set(&id, &srv);
	return err ? refuse_server(err, &id, &srv) : RC_OK;
}

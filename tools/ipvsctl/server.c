// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl server`: real servers. */
#include <errno.h>
#include <string.h>

#include "args.h"
#include "check.h"
#include "cmd.h"
#include "drain.h"
#include "err.h"
#include "kern.h"
#include "lookup.h"
#include "model.h"
#include "opt.h"
#include "refuse.h"
#include "svcopt.h"
#include "view.h"
#include "wire.h"

/* ID SRV SRVOPT... */
static int parse_edit(struct args *a, struct svc_id *id, struct srv_id *name,
		      struct srv_opts *o)
{
	int rc = server_words(a, id, name);

	return rc ? rc : srv_opts_parse(a, id, o, false);
}

/* A server with all its settings, checked against its service's name; the
 * service itself is not read.
 */
static int parse_whole(struct args *a, struct svc_id *id, struct server *srv)
{
	struct srv_opts o;
	struct srv_id name;
	struct service svc;
	int rc;

	rc = parse_edit(a, id, &name, &o);
	if (rc)
		return rc;
	service_defaults(&svc, id);
	server_defaults(srv, id, &name);
	srv_opts_apply(srv, &o);
	return server_check(&svc, srv);
}

static int server_add(struct args *a)
{
	struct server srv;
	struct service svc;
	struct svc_id id;
	int err, rc;

	rc = parse_whole(a, &id, &srv);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	if (opt.dry_run) {
		err = kern_service(&id, &svc, true);
		if (!err && server_find(&svc, srv.af, &srv.addr, srv.port))
			err = -EEXIST;
		if (err)
			return refuse_server(err, &id, &srv);
		service_free(&svc);
	}
	err = kern_server_add(&id, &srv);
	return err ? refuse_server(err, &id, &srv) : RC_OK;
}

static int server_change(struct args *a)
{
	struct service svc;
	struct srv_opts o;
	struct srv_id name;
	struct server srv;
	struct svc_id id;
	int err, rc;

	rc = parse_edit(a, &id, &name, &o);
	if (!rc && !o.named && !o.tun_flags_named) {
		rc = fail(RC_USAGE, svc_text(&id), "nothing to change");
		hint("try: name what changes, such as: weight 5");
	}
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = server_lookup(&id, &name, &srv);
	if (rc)
		return rc;
	service_defaults(&svc, &id);
	srv_opts_apply(&srv, &o);
	/* Another program's odd settings must not prevent a new weight. */
	if (o.named & ~(unsigned int)SRV_WEIGHT || o.tun_flags_named)
		rc = server_check(&svc, &srv);
	if (rc)
		return rc;
	err = kern_server_set(&id, &srv);
	return err ? refuse_server(err, &id, &srv) : RC_OK;
}

static int server_replace(struct args *a)
{
	struct service svc;
	struct server srv;
	struct svc_id id;
	bool there;
	int err, rc;

	rc = parse_whole(a, &id, &srv);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_service(&id, &svc, true);
	if (err)
		return refuse_server(err, &id, &srv);
	there = !!server_find(&svc, srv.af, &srv.addr, srv.port);
	service_free(&svc);
	err = there ? kern_server_set(&id, &srv) : kern_server_add(&id, &srv);
	return err ? refuse_server(err, &id, &srv) : RC_OK;
}

static int server_delete(struct args *a)
{
	struct service svc;
	struct srv_id name;
	struct server srv, *found;
	struct svc_id id;
	int err, rc;

	rc = server_words(a, &id, &name);
	if (!rc)
		rc = arg_end(a, svc_text(&id));
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	server_defaults(&srv, &id, &name);
	err = kern_service(&id, &svc, true);
	if (err == -ESRCH && opt.given & OPT_IF_EXISTS)
		return RC_OK;
	if (err)
		return refuse_server(err, &id, &srv);
	found = server_find(&svc, srv.af, &srv.addr, srv.port);
	if (found)
		err = kern_server_delete(&id, found);
	else if (!(opt.given & OPT_IF_EXISTS))
		rc = missing_server(&svc, &srv);
	if (err)
		rc = refuse_server(err, &id, &srv);
	service_free(&svc);
	return rc;
}

static const struct verb verbs[] = {
	{ "show", view_servers, "[ID [SRV]] [FILTER]...",
	  "list real servers under their services", OPT_WATCH },
	{ "add", server_add, "[to] ID SRV [SRVOPT]...",
	  "add a server to a service (method: nat, weight: 1)", 0 },
	{ "change", server_change, "ID SRV SRVOPT...",
	  "change what is named, keep the rest", 0 },
	{ "replace", server_replace, "ID SRV [SRVOPT]...",
	  "add, or set every option; omitted ones get their default", 0 },
	{ "delete", server_delete, "ID SRV",
	  "remove a server; on-loss decides about its connections",
	  OPT_IF_EXISTS },
	{ "drain", server_drain, "ID SRV",
	  "set weight 0: no new connections, existing ones go on",
	  OPT_WAIT | OPT_KILL | OPT_DEADLINE | OPT_THEN },
	{ "undrain", server_undrain, "ID SRV [weight N]",
	  "set the weight from before the drain, or weight N", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_server = {
	"server", "rs", verbs, "real servers of a service", NOUN_VERBS
};

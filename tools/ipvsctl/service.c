// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl service`: virtual services. */
#include <errno.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "check.h"
#include "cmd.h"
#include "err.h"
#include "kern.h"
#include "lookup.h"
#include "model.h"
#include "opt.h"
#include "refuse.h"
#include "schedopt.h"
#include "svcopt.h"
#include "view.h"
#include "wire.h"

static int parse_server_clause(struct args *a, struct service *svc)
{
	const char *object = svc_text(&svc->id);
	struct srv_opts o;
	struct srv_id name;
	struct server srv;
	int rc;

	rc = parse_srv_id(a, object, &name);
	if (!rc)
		rc = srv_opts_parse(a, &svc->id, &o, true);
	if (rc)
		return rc;
	server_defaults(&srv, &svc->id, &name);
	srv_opts_apply(&srv, &o);
	rc = server_check(svc, &srv);
	if (!rc && server_find(svc, srv.af, &srv.addr, srv.port))
		rc = fail(RC_USAGE, object, "server %s is named twice",
			  ip_port_text(srv.af, &srv.addr, srv.port));
	if (!rc)
		*server_append(svc) = srv;
	return rc;
}

/* The kernel looks at this when they are set, and a new service has no server then. */
static int check_nat(const struct service *svc)
{
	bool latency = svc->policy.value[L4LB_POLICY_ATTR_LATENCY];
	size_t i;
	int rc;

	if (!(latency || svc->policy.value[L4LB_POLICY_ATTR_SNAT]) || !svc->nservers)
		return RC_OK;
	for (i = 0; i < svc->nservers; i++)
		if (svc->servers[i].forward == IP_VS_CONN_F_MASQ)
			return RC_OK;
	rc = fail(RC_USAGE, svc_text(&svc->id),
		  "%s needs a server with nat: replies of others do not pass here",
		  latency ? "latency" : "snat");
	hint("try: without %s, or: server ... nat", latency ? "latency" : "snat");
	return rc;
}

static int parse_add(struct args *a, struct service *svc)
{
	struct svc_opts o;
	struct svc_id id;
	int rc;

	memset(svc, 0, sizeof(*svc));
	rc = parse_svc_id(a, &id);
	if (!rc)
		rc = svc_opts_parse(a, &id, &o);
	if (rc)
		return rc;
	service_defaults(svc, &id);
	svc_opts_apply(svc, &o);
	rc = service_check(svc);
	while (!rc && arg_peek(a)) {
		arg_next(a);	/* "server": nothing else ends the options */
		rc = parse_server_clause(a, svc);
	}
	return rc ? rc : check_nat(svc);
}

/* This run has added the service, so deleting it again loses nothing. */
static int undo_add(const struct svc_id *id, int rc)
{
	int err = kern_service_delete(id);

	if (!err || err == -ESRCH) {
		hint("the service was deleted again: nothing has changed");
		return rc;
	}
	hint("the service could not be deleted again (%s): it has the servers before this one",
	     strerror(-err));
	return fail_code(RC_PARTIAL);
}

static int service_add(struct args *a)
{
	struct service svc;
	size_t i;
	int err, rc;

	rc = parse_add(a, &svc);
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = scheduler_settle(&svc, FOREIGN_REFUSED);
	if (!rc)
		rc = policy_settle(&svc);
	if (rc)
		goto out;
	/* A dry run, too, fails if the service already exists. */
	if (opt.dry_run) {
		struct service old;

		err = kern_service(&svc.id, &old, false);
		if (!err)
			service_free(&old);
		if (err != -ESRCH) {
			rc = refuse_service(err ? err : -EEXIST, &svc);
			goto out;
		}
	}
	err = kern_service_add(&svc);
	if (err) {
		rc = refuse_service(err, &svc);
		goto out;
	}
	for (i = 0; i < svc.nservers && !rc; i++) {
		err = kern_server_add(&svc.id, &svc.servers[i]);
		if (!err)
			continue;
		rc = refuse_server(err, &svc.id, &svc.servers[i]);
		rc = undo_add(&svc.id, rc);
	}
out:
	service_free(&svc);
	return rc;
}

/* Parses a service's name and the options after it. */
static int parse_edit(struct args *a, struct svc_id *id, struct svc_opts *o)
{
	int rc = parse_svc_id(a, id);

	if (!rc)
		rc = svc_opts_parse(a, id, o);
	if (!rc && arg_peek(a)) {
		rc = arg_end(a, svc_text(id));
		hint("try: ipvsctl server add %s ...", svc_text(id));
	}
	return rc;
}

/* Applies the options that were named to a service that was read; sends it. */
static int change(struct service *svc, const struct svc_opts *o)
{
	const unsigned int sched = SVC_SCHEDULER | SVC_OPTION;
	int err, rc = RC_OK;

	svc_opts_apply(svc, o);
	/* Another program's odd settings must not prevent a new scheduler. */
	if (o->named & ~sched)
		rc = service_check(svc);
	if (!rc && o->named & (sched | SVC_FLAGS))
		rc = scheduler_settle(svc, o->named & SVC_FLAGS ?
					      FOREIGN_REFUSED : FOREIGN_DROPPED);
	if (!rc && o->named & SVC_POLICY)
		rc = policy_settle(svc);
	if (rc)
		return rc;
	/* Of several kinds, the kernel must take all or none. */
	if (o->named == SVC_OPTION || o->named == SVC_POLICY)
		err = kern_l4lb_set(svc);
	else
		err = kern_service_set(svc);
	return err ? refuse_service(err, svc) : RC_OK;
}

static int service_change(struct args *a)
{
	struct service svc;
	struct svc_opts o;
	struct svc_id id;
	int rc;

	rc = parse_edit(a, &id, &o);
	if (!rc && !o.named) {
		rc = fail(RC_USAGE, svc_text(&id), "nothing to change");
		hint("try: name what changes, such as: scheduler wrr");
	}
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = service_lookup(&id, &svc, false);
	if (rc)
		return rc;
	rc = change(&svc, &o);
	service_free(&svc);
	return rc;
}

static int service_replace(struct args *a)
{
	struct service svc, old;
	struct svc_opts o;
	struct svc_id id;
	int err, rc;

	rc = parse_edit(a, &id, &o);
	if (rc)
		return rc;
	service_defaults(&svc, &id);
	svc_opts_apply(&svc, &o);
	rc = service_check(&svc);
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = scheduler_settle(&svc, FOREIGN_REFUSED);
	if (!rc)
		rc = policy_settle(&svc);
	if (rc)
		goto out;
	err = kern_service(&id, &old, false);
	if (err && err != -ESRCH) {
		rc = refuse(err, svc_text(&id), "reading the service");
		goto out;
	}
	if (!err)
		service_free(&old);
	err = err ? kern_service_add(&svc) : kern_service_set(&svc);
	rc = err ? refuse_service(err, &svc) : RC_OK;
out:
	service_free(&svc);
	return rc;
}

static int service_delete(struct args *a)
{
	struct service old;
	struct svc_id id;
	int err, rc;

	rc = parse_svc_id(a, &id);
	if (!rc)
		rc = arg_end(a, svc_text(&id));
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = opt.dry_run ? kern_service(&id, &old, false) : 0;
	if (!err && opt.dry_run)
		service_free(&old);
	if (!err)
		err = kern_service_delete(&id);
	if (err == -ESRCH)
		return opt.given & OPT_IF_EXISTS ? RC_OK : missing_service(&id);
	return err ? refuse(err, svc_text(&id), "deleting") : RC_OK;
}

static int service_flush(struct args *a)
{
	struct service_list list = { 0 };
	int err, rc;
	size_t n;

	rc = arg_end(a, NULL);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_services(&list, false);
	n = list.n;
	service_list_free(&list);
	if (err)
		return refuse(err, NULL, "reading the services");
	if (n && !(opt.given & OPT_YES) && !opt.dry_run) {
		rc = fail(RC_USAGE, NULL,
			  "flush would delete %zu service%s and interrupt their connections; it wants --yes",
			  n, n == 1 ? "" : "s");
		hint("to have a copy first: ipvsctl save -o FILE");
		return rc;
	}
	err = kern_flush();
	if (!err && !opt.dry_run)
		err = kern_services(&list, false);
	if (list.n)
		note("ipvsctl: %zu protected service%s stay%s", list.n,
		     list.n == 1 ? "" : "s", list.n == 1 ? "s" : "");
	service_list_free(&list);
	return err ? refuse(err, NULL, "flush") : RC_OK;
}

static const struct verb verbs[] = {
	{ "show", view_services, "[ID|FILTER]...",
	  "list services with their servers", OPT_WATCH },
	{ "add", service_add,
	  "ID [SVCOPT]... [server SRV [SRVOPT]...]...",
	  "add a service and its servers: all of them or nothing", 0 },
	{ "change", service_change, "ID SVCOPT...",
	  "change what is named, keep the rest", 0 },
	{ "replace", service_replace, "ID [SVCOPT]...",
	  "add, or set every option; omitted ones get their default; servers stay",
	  0 },
	{ "delete", service_delete, "ID",
	  "delete a service with its servers; its connections end as on-loss says",
	  OPT_IF_EXISTS },
	{ "flush", service_flush, "", "delete every service", OPT_YES },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_service = {
	"service", "svc", verbs, "virtual services", NOUN_VERBS
};

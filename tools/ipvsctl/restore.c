// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl restore`: applies a configuration file. It is read and checked as a
 * whole before anything is sent. Then missing services and servers are added,
 * and those that differ are changed in place. Nothing is ever deleted, so
 * connections keep their servers. A second run has nothing to do, unless the file
 * names keys.
 *
 * l4lb gets all changes in one message and applies all of them or none. In-tree
 * ip_vs gets a command for each service and server; the first refusal ends it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "cmd.h"
#include "config.h"
#include "describe.h"
#include "err.h"
#include "kern.h"
#include "kern_drain.h"
#include "kern_batch.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "rules.h"
#include "schedopt.h"
#include "scheduler_list.h"
#include "wire.h"

enum { FILE_MAX = 64 << 20 };

struct tally {
	size_t added, changed, same, extra;
};

struct plan {
	struct service_list want, have;
	struct tally services, servers;
	const char *file;
	struct batch *batch;	/* what is sent at the end, or NULL */
	bool send;		/* false: only count */
	size_t done;
};

static int read_all(const char *file, char **text, size_t *len)
{
	FILE *f = strcmp(file, "-") ? fopen(file, "re") : stdin;
	size_t size = 0, n;
	int rc = RC_OK;
	char *more;

	*text = NULL;
	*len = 0;
	if (!f)
		return fail(RC_USAGE, NULL, "cannot read %s: %s", file,
			    strerror(errno));
	do {
		size += 1 << 16;
		more = realloc(*text, size + 1);
		if (!more || size > FILE_MAX) {
			*text = more ? more : *text;
			rc = fail(RC_USAGE, NULL, "%s is too large", file);
			break;
		}
		*text = more;
		n = fread(*text + *len, 1, size - *len, f);
		*len += n;
		(*text)[*len] = '\0';
	} while (*len == size);
	if (!rc && ferror(f))
		rc = fail(RC_USAGE, NULL, "cannot read %s: %s", file,
			  strerror(errno));
	if (f != stdin)
		fclose(f);
	return rc;
}

static const char *file_name(const char *file)
{
	return strcmp(file, "-") ? file : "standard input";
}

static int read_file(const char *file, struct service_list *list)
{
	const char *name = file_name(file);
	char *text, *p;
	size_t len;
	int rc = read_all(file, &text, &len);

	if (!rc && strlen(text) != len)
		rc = fail(RC_USAGE, NULL, "%s is not a text file", name);
	p = text ? text + strspn(text, " \t\r\n") : NULL;
	if (!rc && *p == '{')
		rc = config_read(name, text, len, list);
	else if (!rc)
		rc = rules_read(name, text, list);
	if (!rc && !list->n)
		rc = fail(RC_USAGE, NULL, "%s names no service", name);
	free(text);
	return rc;
}

/* Each scheduler must be in use, loaded or on disk, and have the options of the
 * file. This is checked before anything is sent: in-tree ip_vs
 * would stop half-way.
 */
static int check_schedulers(struct plan *p)
{
	const char *known = "";
	int rc = RC_OK;
	size_t i, j;

	for (i = 0; i < p->want.n && !rc; i++) {
		struct service *svc = &p->want.v[i];
		bool same = !strcmp(known, svc->scheduler);

		for (j = 0; !same && j < p->have.n; j++)
			same = !strcmp(p->have.v[j].scheduler, svc->scheduler);
		if (!same && !scheduler_known(svc->scheduler)) {
			rc = scheduler_missing(svc_text(&svc->id),
					       svc->scheduler);
			fail_where(p->file, svc->line);
			return rc;
		}
		known = svc->scheduler;
		rc = scheduler_settle(svc, FOREIGN_KEPT);
		if (!rc)
			rc = policy_settle(svc);
	}
	return rc;
}

/* Neither service lists options that are at their default. A key differs: the kernel
 * tells a number made of it, and another key may have the same number.
 */
static bool same_options(const struct service *a, const struct service *b)
{
	const struct svc_option *other;
	size_t i;

	for (i = 0; i < a->noptions; i++) {
		other = service_option(b, a->options[i].name);
		if (!other || a->options[i].key ||
		    other->value != a->options[i].value)
			return false;
	}
	return a->noptions == b->noptions;
}

static bool same_service(const struct service *a, const struct service *b)
{
	uint32_t diff = (a->flags ^ b->flags) & ~(uint32_t)IP_VS_SVC_F_HASHED;
	bool persistent = a->flags & IP_VS_SVC_F_PERSISTENT;

	if (diff || strcmp(a->scheduler, b->scheduler) ||
	    strcmp(a->pe, b->pe) || !same_options(a, b) ||
	    !policy_equal(&a->policy, &b->policy))
		return false;
	return !persistent || (a->timeout == b->timeout &&
			       a->netmask == b->netmask);
}

static bool same_server(const struct server *a, const struct server *b)
{
	return !((a->forward ^ b->forward) & IP_VS_CONN_F_FWD_MASK) &&
	       a->weight == b->weight && a->max_conns == b->max_conns &&
	       a->min_conns == b->min_conns && a->tun_type == b->tun_type &&
	       a->tun_port == b->tun_port && a->tun_flags == b->tun_flags;
}

static int walk_server(struct plan *p, const struct service *want,
		       const struct server *srv, const struct service *have)
{
	const struct server *old = NULL;
	int err = 0;

	if (have)
		old = server_find(have, srv->af, &srv->addr, srv->port);
	if (old && same_server(srv, old)) {
		p->servers.same++;
		return RC_OK;
	}
	if (old)
		p->servers.changed++;
	else
		p->servers.added++;
	if (p->send && p->batch) {
		kern_announce(old ? "set" : "add",
			      describe_server(&want->id, srv));
		batch_server(p->batch, want, srv);
	} else if (p->send) {
		err = old ? kern_server_set(&want->id, srv)
			  : kern_server_add(&want->id, srv);
	}
	if (err)
		return refuse_server(err, &want->id, srv);
	p->done++;
	return RC_OK;
}

static int walk_service(struct plan *p, const struct service *want)
{
	const struct service *have = service_find(&p->have, &want->id);
	int err = 0, rc = RC_OK;
	size_t i;

	if (have && same_service(want, have)) {
		p->services.same++;
	} else {
		if (have)
			p->services.changed++;
		else
			p->services.added++;
		if (p->send && p->batch) {
			kern_announce(have ? "set" : "add",
				      describe_service(want));
			batch_service(p->batch, want);
		} else if (p->send) {
			err = have ? kern_service_set(want)
				   : kern_service_add(want);
		}
		if (err)
			return refuse_service(err, want);
		p->done++;
	}
	for (i = 0; i < want->nservers && !rc; i++)
		rc = walk_server(p, want, &want->servers[i], have);
	if (have)
		p->servers.extra += have->nservers;
	return rc;
}

static int walk(struct plan *p, bool send)
{
	size_t i, kept, found;
	int rc = RC_OK;

	memset(&p->services, 0, sizeof(p->services));
	memset(&p->servers, 0, sizeof(p->servers));
	p->send = send;
	p->done = 0;
	for (i = 0; i < p->want.n && !rc; i++)
		rc = walk_service(p, &p->want.v[i]);
	kept = p->services.changed + p->services.same;
	p->services.extra = p->have.n - kept;
	found = p->servers.changed + p->servers.same;
	p->servers.extra -= rc ? 0 : found;
	return rc;
}

static json_t *tally_json(const struct tally *t)
{
	return json_pack("{s:I, s:I, s:I, s:I}",
			 "added", (json_int_t)t->added,
			 "changed", (json_int_t)t->changed,
			 "unchanged", (json_int_t)t->same,
			 "not_in_file", (json_int_t)t->extra);
}

static int report(const struct plan *p)
{
	const struct tally *s = &p->services, *r = &p->servers;
	json_t *doc, *done;

	if (opt.json) {
		doc = doc_new();
		done = json_pack("{s:b, s:o, s:o}", "dry_run", opt.dry_run,
				 "services", tally_json(s),
				 "servers", tally_json(r));
		if (opt.dry_run)
			json_object_set_new(doc, "plan", plan_json());
		json_object_set_new(doc, "restore", done);
		return print_doc(doc);
	}
	if (opt.quiet)
		return RC_OK;
	printf("services: %zu %sadded, %zu %schanged, %zu unchanged\n",
	       s->added, opt.dry_run ? "would be " : "", s->changed,
	       opt.dry_run ? "would be " : "", s->same);
	printf("servers:  %zu %sadded, %zu %schanged, %zu unchanged\n",
	       r->added, opt.dry_run ? "would be " : "", r->changed,
	       opt.dry_run ? "would be " : "", r->same);
	if (s->extra || r->extra)
		printf("left alone, not in the file: %zu services, and %zu servers of the others\n",
		       s->extra, r->extra);
	return RC_OK;
}

static int restore_drain(const struct service *svc, const struct server *srv)
{
	const struct server_drain *drain = &srv->drain;
	int err = 0;

	if (drain->weight)
		err = kern_drain_weight(&svc->id, srv, drain->weight);
	if (!err && (drain->timed || drain->then))
		err = kern_drain(&svc->id, srv, drain->timed && !drain->left
				 ? 1 : drain->left, drain->then);
	return err ? refuse_server(err, &svc->id, srv) : RC_OK;
}

/* What the drained servers of the file had before, and what follows. */
static int restore_drains(const struct plan *p)
{
	const struct service *svc;
	size_t i, j;
	int rc = RC_OK;

	for (i = 0; i < p->want.n; i++) {
		svc = &p->want.v[i];
		for (j = 0; j < svc->nservers && !rc; j++)
			if (svc->servers[j].drain.known)
				rc = restore_drain(svc, &svc->servers[j]);
	}
	if (!rc)
		return RC_OK;
	hint("the services are in effect; try: run restore again");
	return fail_code(RC_PARTIAL);
}

static int apply_batch(struct plan *p)
{
	const struct service *svc;
	const struct server *srv;
	int err = 0, rc;

	p->batch = batch_new(L4LB_SET_MERGE);
	walk(p, true);
	if (p->done)
		err = batch_send(p->batch, &svc, &srv);
	batch_free(p->batch);
	p->batch = NULL;
	if (!err) {
		rc = restore_drains(p);
		return rc ? rc : report(p);
	}
	if (srv)
		rc = refuse_server(err, &svc->id, srv);
	else if (svc)
		rc = refuse_service(err, svc);
	else
		rc = refuse(err, NULL, "setting the services");
	if (svc)
		fail_where(p->file, srv ? srv->line : svc->line);
	hint("nothing was changed");
	return rc;
}

static int apply(struct plan *p)
{
	size_t total;
	int rc;

	if (wire_has_own() && !opt.dry_run)
		return apply_batch(p);
	walk(p, false);
	total = p->done;
	rc = walk(p, true);
	if (!rc)
		return report(p);
	if (!p->done)
		return rc;
	hint("applied %zu of %zu changes before this one; they are in effect",
	     p->done, total);
	hint("try: remove the cause and run restore again; it continues from here");
	return fail_code(RC_PARTIAL);
}

static int restore(struct args *a)
{
	const char *file = arg_next(a);
	struct plan p = { 0 };
	int err, rc;

	p.file = file_name(file ? file : "-");
	rc = arg_end(a, "restore");
	if (!rc && !file && isatty(STDIN_FILENO))
		note("reading the configuration from the terminal; Ctrl-D ends it");
	if (!rc)
		rc = read_file(file ? file : "-", &p.want);
	if (!rc)
		rc = wire_open();
	if (!rc) {
		err = kern_config(&p.have);
		if (err)
			rc = refuse(err, NULL, "reading the services");
	}
	if (!rc)
		rc = check_schedulers(&p);
	if (!rc)
		rc = apply(&p);
	service_list_free(&p.want);
	service_list_free(&p.have);
	return rc;
}

static const struct verb verbs[] = {
	{ "restore", restore, "[FILE]",
	  "add and change what FILE (or standard input) lists; delete nothing",
	  0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_restore = {
	"restore", NULL, verbs, "read what save or ipvsadm -Sn wrote", NOUN_SINGLE
};

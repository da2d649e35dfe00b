// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "describe.h"
#include "err.h"
#include "kern.h"
#include "kern_batch.h"
#include "opt.h"
#include "plan.h"
#include "refuse.h"
#include "schedopt.h"
#include "scheduler_list.h"
#include "tree.h"
#include "wire.h"

int plan_read(struct plan *p)
{
	int err = kern_config(&p->have);

	if (err)
		return refuse(err, NULL, "reading the services");
	service_list_sort(&p->have);
	return RC_OK;
}

void plan_free(struct plan *p)
{
	service_list_free(&p->want);
	service_list_free(&p->have);
}

/* Rules of ipvsadm have a line, and no column. */
void plan_place(const struct plan *p, const struct service *svc,
		const struct server *srv)
{
	unsigned int line = srv ? srv->line : svc->line;
	unsigned int column = srv ? srv->column : svc->column;

	if (line && column && p->source)
		tree_place(p->source, line, column);
	else if (line)
		fail_where(p->file, line);
}

/* A program that has lost its pin, and that the service has under this path, stays. */
static void keep_programs(struct service *svc, const struct service *have)
{
	const struct svc_option *now;
	size_t i;

	for (i = 0; have && i < svc->noptions; i++) {
		struct svc_option *o = &svc->options[i];

		now = o->path && !o->value ? service_option(have, o->name) : NULL;
		if (!now || !now->path || strcmp(now->path, o->path) ||
		    !access(o->path, F_OK) || errno != ENOENT)
			continue;
		o->value = now->value;
		note("%s: %s is no longer there; the service keeps its program",
		     svc_text(&svc->id), o->path);
	}
}

int plan_check(struct plan *p)
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
			plan_place(p, svc, NULL);
			return rc;
		}
		known = svc->scheduler;
		if (svc->noptions)
			keep_programs(svc, service_find(&p->have, &svc->id));
		rc = scheduler_settle(svc, FOREIGN_KEPT);
		if (!rc)
			rc = policy_settle(svc);
		if (rc)
			plan_place(p, svc, NULL);
	}
	return rc;
}

static const char *path_of(const struct svc_option *o)
{
	return o->path ? o->path : "";
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
		    other->value != a->options[i].value ||
		    strcmp(path_of(other), path_of(&a->options[i])))
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

bool plan_same_server(const struct server *a, const struct server *b)
{
	return !((a->forward ^ b->forward) & IP_VS_CONN_F_FWD_MASK) &&
	       a->weight == b->weight && a->max_conns == b->max_conns &&
	       a->min_conns == b->min_conns && a->tun_type == b->tun_type &&
	       a->tun_port == b->tun_port && a->tun_flags == b->tun_flags;
}

/* ---- walking ---- */

struct walk {
	struct plan *plan;
	plan_see see;
	void *arg;
};

static int tell(const struct walk *w, struct tally *t,
		const struct plan_item *item)
{
	int rc = w->see ? w->see(w->plan, item, w->arg) : RC_OK;

	if (rc)
		return rc;
	t->added += item->step == PLAN_ADD;
	t->changed += item->step == PLAN_CHANGE;
	t->removed += item->step == PLAN_REMOVE;
	t->same += item->step == PLAN_SAME;
	w->plan->done += item->step != PLAN_SAME;
	return RC_OK;
}

static int cmp_pointers(const void *a, const void *b)
{
	return server_cmp(*(struct server *const *)a,
			  *(struct server *const *)b);
}

/* Servers of @old that @svc does not name. */
static int removed_servers(const struct walk *w, const struct service *svc,
			   const struct service *old)
{
	const struct server **v = calloc(svc->nservers + 1, sizeof(*v)), *srv;
	struct plan_item item = { .step = PLAN_REMOVE, .svc = svc,
				  .old = old, .loses = true };
	int rc = RC_OK;
	size_t i;

	if (!v)
		err(3, "out of memory");
	for (i = 0; i < svc->nservers; i++)
		v[i] = &svc->servers[i];
	qsort(v, svc->nservers, sizeof(*v), cmp_pointers);
	for (i = 0; i < old->nservers && !rc; i++) {
		srv = &old->servers[i];
		if (bsearch(&srv, v, svc->nservers, sizeof(*v), cmp_pointers))
			continue;
		item.old_srv = srv;
		rc = tell(w, &w->plan->servers, &item);
	}
	free(v);
	return rc;
}

static size_t count_found(const struct service *svc, const struct service *old)
{
	size_t i, found = 0;

	for (i = 0; old && i < svc->nservers; i++)
		found += !!server_search(old, &svc->servers[i]);
	return found;
}

static int walk_service(const struct walk *w, const struct service *svc)
{
	const struct service *old = service_find(&w->plan->have, &svc->id);
	struct plan_item item = { .svc = svc, .old = old };
	size_t i, extra;
	int rc;

	extra = old ? old->nservers - count_found(svc, old) : 0;
	item.loses = w->plan->prune && extra;
	item.step = !old ? PLAN_ADD
		: same_service(svc, old) ? PLAN_SAME : PLAN_CHANGE;
	rc = tell(w, &w->plan->services, &item);
	for (i = 0; i < svc->nservers && !rc; i++) {
		item.srv = &svc->servers[i];
		item.old_srv = old ? server_search(old, item.srv) : NULL;
		item.step = !item.old_srv ? PLAN_ADD
			: plan_same_server(item.srv, item.old_srv) ? PLAN_SAME
							      : PLAN_CHANGE;
		rc = tell(w, &w->plan->servers, &item);
	}
	if (!rc && item.loses)
		return removed_servers(w, svc, old);
	w->plan->servers.extra += extra;
	return rc;
}

static int removed_service(const struct walk *w, const struct service *old)
{
	struct plan_item item = { .step = PLAN_REMOVE, .old = old };
	struct plan *p = w->plan;

	if (p->prune && (!p->may_prune || p->may_prune(p->arg, old)))
		return tell(w, &p->services, &item);
	p->services.extra++;
	return RC_OK;
}

int plan_walk(struct plan *p, plan_see see, void *arg)
{
	const struct walk w = { p, see, arg };
	int rc = RC_OK;
	size_t i;

	p->services = (struct tally){ .added = 0 };
	p->servers = (struct tally){ .added = 0 };
	p->done = 0;
	for (i = 0; i < p->want.n && !rc; i++)
		rc = walk_service(&w, &p->want.v[i]);
	for (i = 0; i < p->have.n && !rc; i++)
		if (!service_find(&p->want, &p->have.v[i].id))
			rc = removed_service(&w, &p->have.v[i]);
	return rc;
}

/* ---- sending ---- */

static void announce(const struct plan_item *item)
{
	static const char *const verbs[] = {
		[PLAN_ADD] = "add", [PLAN_CHANGE] = "set",
		[PLAN_REMOVE] = "delete",
	};
	const struct service *svc = item->svc ? item->svc : item->old;
	const struct server *srv = item->srv ? item->srv : item->old_srv;

	/* A text that nobody will see was a sixth of restore's instructions. */
	if (item->step != PLAN_SAME && kern_announces())
		kern_announce(verbs[item->step], srv
			      ? describe_server(&svc->id, srv)
			      : describe_service(svc));
}

/* If servers are to be removed, the message has all that stay. */
static int pack(struct plan *p, const struct plan_item *item, void *arg)
{
	bool whole = item->loses || item->step != PLAN_SAME;
	struct batch *b = arg;

	(void)p;
	announce(item);
	if (item->srv && whole)
		batch_server(b, item->svc, item->srv);
	else if (!item->svc)
		batch_remove(b, item->old);
	else if (!item->old_srv && !item->srv && item->loses)
		batch_service_exact(b, item->svc);
	else if (!item->old_srv && !item->srv && whole)
		batch_service(b, item->svc);
	return RC_OK;
}

static int refuse_batch(struct plan *p, int err, const struct service *svc,
			const struct server *srv)
{
	int rc;

	if (srv)
		rc = refuse_server(err, &svc->id, srv);
	else if (svc)
		rc = refuse_service(err, svc);
	else
		rc = refuse(err, NULL, "setting the services");
	if (svc)
		plan_place(p, svc, srv);
	hint("nothing was changed");
	return rc;
}

static bool has_timeouts(const struct plan *p)
{
	return p->timeouts.tcp || p->timeouts.tcp_fin || p->timeouts.udp;
}

static int apply_batch(struct plan *p)
{
	struct batch *b = batch_new(L4LB_SET_MERGE);
	const struct service *svc;
	const struct server *srv;
	int err = 0;

	if (has_timeouts(p))
		batch_timeouts(b, &p->timeouts);
	plan_walk(p, pack, b);
	if (p->done || has_timeouts(p))
		err = batch_send(b, &svc, &srv);
	batch_free(b);
	if (err)
		return refuse_batch(p, err, svc, srv);
	return RC_OK;
}

/* ---- step by step, for ip_vs ---- */

struct sender {
	bool removals;
	size_t sent;
};

static int send_removal(const struct plan_item *item)
{
	const struct service *old = item->old;
	int err = item->old_srv ? kern_server_delete(&old->id, item->old_srv)
				: kern_service_delete(&old->id);

	if (!err || err == -ENOENT || err == -ESRCH)
		return RC_OK;
	return item->old_srv ? refuse_server(err, &old->id, item->old_srv)
			     : refuse_service(err, old);
}

static int send_change(const struct plan_item *item)
{
	const struct service *svc = item->svc;
	int err;

	if (item->srv) {
		err = item->old_srv ? kern_server_set(&svc->id, item->srv)
				    : kern_server_add(&svc->id, item->srv);
		return err ? refuse_server(err, &svc->id, item->srv) : RC_OK;
	}
	err = item->old ? kern_service_set(svc) : kern_service_add(svc);
	return err ? refuse_service(err, svc) : RC_OK;
}

static int send_one(struct plan *p, const struct plan_item *item, void *arg)
{
	bool removal = item->step == PLAN_REMOVE;
	struct sender *s = arg;
	int rc;

	if (item->step == PLAN_SAME || removal != s->removals)
		return RC_OK;
	rc = removal ? send_removal(item) : send_change(item);
	if (rc && !removal)
		plan_place(p, item->svc, item->srv);
	s->sent += !rc;
	return rc;
}

/* Additions and changes first, so that no connection lacks a server. */
static int apply_steps(struct plan *p, const char *again)
{
	struct sender s = { .removals = false };
	size_t total;
	int rc;

	plan_walk(p, NULL, NULL);
	total = p->done;
	rc = plan_walk(p, send_one, &s);
	s.removals = true;
	if (!rc)
		rc = plan_walk(p, send_one, &s);
	if (!rc || !s.sent)
		return rc;
	hint("applied %zu of %zu changes before this one; they are in effect",
	     s.sent, total);
	hint("try: remove the cause and run %s again; it continues from here",
	     again);
	return fail_code(RC_PARTIAL);
}

/* The timeouts go first: set back, they leave no trace if the services are refused. */
static int apply_separately(struct plan *p, const char *again)
{
	int err = has_timeouts(p) ? kern_timeouts_set(&p->timeouts) : 0, rc;

	if (err)
		return refuse(err, "timeouts", "set");
	rc = apply_steps(p, again);
	if (rc && rc != RC_PARTIAL && has_timeouts(p) && !opt.dry_run)
		kern_timeouts_set(&p->timeouts_now);
	return rc;
}

int plan_apply(struct plan *p, const char *again)
{
	return wire_has_own() && !opt.dry_run ? apply_batch(p)
					      : apply_separately(p, again);
}

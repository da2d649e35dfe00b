// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "describe.h"
#include "difference.h"
#include "err.h"
#include "opt.h"
#include "out.h"
#include "plan.h"
#include "program.h"
#include "refuse.h"
#include "undo.h"

/* ---- of a plan ---- */

struct collector {
	struct undo *undo;
	const struct svc_id *last;
	bool prune;
};

/* Without --prune, a service keeps the servers that the file does not name. */
static void add_after(struct undo *u, const struct plan_item *item, bool prune)
{
	struct service *svc = service_append(&u->after), named;
	size_t i;

	if (!item->old || prune) {
		service_share(svc, item->svc);
		return;
	}
	service_copy(svc, item->svc);
	service_copy(&named, svc);
	service_sort(&named);
	for (i = 0; i < item->old->nservers; i++)
		if (!server_search(&named, &item->old->servers[i]))
			*server_append(svc) = item->old->servers[i];
	service_free(&named);
}

static int collect(struct plan *p, const struct plan_item *item, void *arg)
{
	const struct service *svc = item->svc ? item->svc : item->old;
	struct collector *c = arg;

	(void)p;
	if ((item->step == PLAN_SAME && !item->loses) || c->last == &svc->id)
		return RC_OK;
	c->last = &svc->id;
	if (item->old)
		service_share(service_append(&c->undo->before), item->old);
	if (item->svc)
		add_after(c->undo, item, c->prune);
	return RC_OK;
}

void undo_of_plan(struct undo *u, struct plan *p)
{
	struct collector c = { .undo = u, .prune = p->prune };

	memset(u, 0, sizeof(*u));
	plan_walk(p, collect, &c);
	service_list_sort(&u->before);
	service_list_sort(&u->after);
}

int undo_hold(const struct undo *u)
{
	int rc = RC_OK;
	size_t i;

	for (i = 0; i < u->before.n && !rc; i++)
		rc = program_hold(&u->before.v[i]);
	return rc;
}

void undo_free(struct undo *u)
{
	service_list_free(&u->before);
	service_list_free(&u->after);
	xdp_change_free(&u->xdp);
}

/* ---- beside the kernel ---- */

/* The services of the kernel that the apply has changed. */
static int read_those(struct undo *u, struct plan *p)
{
	struct service_list *have = &p->have;
	size_t i, kept = 0;
	int rc;

	memset(p, 0, sizeof(*p));
	p->prune = true;
	rc = plan_read(p);
	for (i = 0; i < have->n; i++) {
		if (service_find(&u->before, &have->v[i].id) ||
		    service_find(&u->after, &have->v[i].id))
			have->v[kept++] = have->v[i];
		else
			service_free(&have->v[i]);
	}
	have->n = kept;
	return rc;
}

static bool has_keys(const struct service *svc)
{
	size_t i;

	for (i = 0; i < svc->noptions; i++)
		if (svc->options[i].key)
			return true;
	return false;
}

int undo_settle(struct undo *u)
{
	struct plan p = { .prune = true };
	size_t i;
	int rc;

	for (i = 0; i < u->after.n && !has_keys(&u->after.v[i]); i++)
		;
	if (i == u->after.n)
		return RC_OK;
	rc = read_those(u, &p);
	if (!rc) {
		service_list_free(&u->after);
		u->after = p.have;
		memset(&p.have, 0, sizeof(p.have));
		u->keys = true;
	}
	plan_free(&p);
	return rc;
}

static bool time_differs(uint32_t set, uint32_t now)
{
	return set && set != now;
}

static int timeouts_differ(const struct undo *u, struct kern_timeouts *now,
			   bool *differ)
{
	int err = 0;

	*differ = false;
	if (u->set.tcp || u->set.tcp_fin || u->set.udp)
		err = kern_timeouts(now);
	else
		*now = u->set;
	if (err)
		return refuse(err, NULL, "reading the timeouts");
	*differ = time_differs(u->set.tcp, now->tcp) ||
		  time_differs(u->set.tcp_fin, now->tcp_fin) ||
		  time_differs(u->set.udp, now->udp);
	return RC_OK;
}

/* From what the apply left to what is there now. */
struct since {
	struct plan plan;
	struct kern_timeouts times;
	bool times_differ;
	bool any;
};

/* Returns an exit code; compare_end() in any case. */
static int compare(struct undo *u, struct since *s)
{
	int rc, err;

	memset(s, 0, sizeof(*s));
	rc = read_those(u, &s->plan);
	s->plan.want = s->plan.have;
	s->plan.have = u->after;
	err = timeouts_differ(u, &s->times, &s->times_differ);
	if (!rc)
		rc = err;
	if (!rc)
		rc = plan_walk(&s->plan, NULL, NULL);
	s->any = s->times_differ || s->plan.done;
	return rc;
}

static void compare_end(struct undo *u, struct since *s)
{
	u->after = s->plan.have;
	memset(&s->plan.have, 0, sizeof(s->plan.have));
	plan_free(&s->plan);
}

int undo_matches(struct undo *u, bool *same)
{
	struct since s;
	bool holds = false;
	int rc = compare(u, &s);

	if (!rc)
		rc = xdp_change_holds(&u->xdp, &holds);
	*same = !s.any && holds;
	compare_end(u, &s);
	return rc;
}

static void show(const struct undo *u, struct since *s)
{
	struct difference d = { .list = opt.json ? json_array() : NULL };
	json_t *doc;

	if (s->times_differ) {
		difference_line(&d, '-', "", describe_timeouts(&u->set));
		difference_line(&d, '+', "", describe_timeouts(&s->times));
	}
	plan_walk(&s->plan, difference_see, &d);
	if (!opt.json)
		return;
	doc = doc_new();
	json_object_set_new(doc, "changed_since", d.list);
	print_doc(doc);
}

int undo_check(struct undo *u)
{
	struct since s;
	int rc = compare(u, &s);

	if (!rc && s.any) {
		show(u, &s);
		rc = fail(RC_DIFF, "rollback",
			  "what was applied was changed since by another command or program; nothing was done");
		hint("try: ipvsctl apply FILE, with the file that is to be in effect");
	}
	compare_end(u, &s);
	return rc;
}

/* The kernel removes no protected service. */
static int unprotect(struct undo *u, struct plan *p)
{
	struct service *svc;
	int err = 0;
	size_t i;

	for (i = 0; i < p->have.n && !err; i++) {
		svc = &p->have.v[i];
		if (!svc->policy.value[POLICY_PROTECTED] ||
		    service_find(&u->before, &svc->id))
			continue;
		svc->policy.value[POLICY_PROTECTED] = 0;
		err = kern_l4lb_set(svc);
		if (err)
			return refuse_service(err, svc);
	}
	return RC_OK;
}

/* A device that has gone, or refuses XDP now, keeps no service from going back. */
int undo_run(struct undo *u, struct plan *p)
{
	int rc = read_those(u, p);
	size_t i;

	for (i = 0; i < u->before.n && !rc; i++)
		rc = program_find(&u->before.v[i]);
	p->want = u->before;
	if (!rc)
		rc = unprotect(u, p);
	p->timeouts = u->had;
	p->timeouts_now = u->set;
	if (!rc)
		rc = plan_apply(p, "rollback");
	memset(&p->want, 0, sizeof(p->want));
	plan_free(p);
	if (rc)
		return rc;
	u->xdp_stays = !xdp_change_back(&u->xdp);
	return RC_OK;
}

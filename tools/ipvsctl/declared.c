// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "args.h"
#include "declared.h"
#include "describe.h"
#include "err.h"
#include "opt.h"
#include "refuse.h"
#include "undo.h"
#include "wire.h"

static bool may_prune(const void *arg, const struct service *svc)
{
	const struct declared *d = arg;

	return declare_in_scope(&d->file, &svc->id) &&
	       !svc->policy.value[POLICY_PROTECTED] &&
	       !strcmp(svc->policy.owner, d->file.owner);
}

/* Services of the file have its owner, unless they name one. */
static int set_owner(struct declared *d)
{
	struct service_list *list = &d->plan.want;
	int rc = RC_OK;
	size_t i;

	if (opt.owner)
		rc = policy_parse_owner(opt.owner, "--owner", d->file.owner);
	for (i = 0; i < list->n && !rc; i++)
		if (!list->v[i].policy.owner[0])
			memcpy(list->v[i].policy.owner, d->file.owner,
			       sizeof(d->file.owner));
	return rc;
}

/* A service that another owner has is not taken over. */
static int check_owners(struct declared *d)
{
	struct service_list *list = &d->plan.want;
	const struct service *old;
	size_t i;
	int rc;

	for (i = 0; i < list->n; i++) {
		const char *owner = list->v[i].policy.owner;

		old = service_find(&d->plan.have, &list->v[i].id);
		if (!old || !old->policy.owner[0] ||
		    !strcmp(old->policy.owner, owner))
			continue;
		rc = fail(RC_REFUSED, svc_text(&old->id),
			  "the service belongs to owner %s, not to %s",
			  old->policy.owner,
			  owner[0] ? owner : "a file without owner");
		plan_place(&d->plan, &list->v[i], NULL);
		hint("nothing was changed");
		return rc;
	}
	return RC_OK;
}

static int file_name(struct args *a, const char *verb, const char **file)
{
	int rc;

	*file = arg_next(a);
	rc = arg_end(a, verb);
	if (rc || *file)
		return rc;
	rc = fail(RC_USAGE, verb, "no file named");
	hint("try: ipvsctl %s FILE, or - for standard input", verb);
	return rc;
}

static bool differs(uint32_t want, uint32_t have)
{
	return want && want != have;
}

/* Only those that the file names; 0 stands for the others. */
static int read_timeouts(struct declared *d)
{
	const struct kern_timeouts *want = &d->file.timeouts;
	int err;

	if (!want->tcp && !want->tcp_fin && !want->udp)
		return RC_OK;
	err = kern_timeouts(&d->timeouts);
	if (err)
		return refuse(err, NULL, "reading the timeouts");
	d->timeouts_differ = differs(want->tcp, d->timeouts.tcp) ||
			     differs(want->tcp_fin, d->timeouts.tcp_fin) ||
			     differs(want->udp, d->timeouts.udp);
	return RC_OK;
}

int declared_open(struct declared *d, struct args *a, const char *verb)
{
	const char *file;
	int rc;

	memset(d, 0, sizeof(*d));
	rc = file_name(a, verb, &file);
	if (!rc)
		rc = source_read(file, DECLARE_BYTES, &d->source);
	if (!rc)
		rc = declare_read(&d->source, &d->file);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	d->plan.file = d->source.name;
	d->plan.source = &d->source;
	d->plan.want = d->file.services;
	memset(&d->file.services, 0, sizeof(d->file.services));
	d->plan.prune = opt.given & OPT_PRUNE;
	d->plan.may_prune = may_prune;
	d->plan.arg = d;
	rc = set_owner(d);
	if (!rc)
		rc = plan_read(&d->plan);
	if (!rc)
		rc = check_owners(d);
	if (!rc)
		rc = read_timeouts(d);
	if (!rc && d->file.has_xdp)
		rc = xdp_change_read(&d->xdp, &d->file.xdp);
	return rc ? rc : plan_check(&d->plan);
}

void declared_close(struct declared *d)
{
	plan_free(&d->plan);
	xdp_change_free(&d->xdp);
	declaration_free(&d->file);
	source_free(&d->source);
}

/* XDP begins first, because a device may refuse it, and ends last. */
int declared_apply(struct declared *d)
{
	int rc = xdp_change_begin(&d->xdp);

	if (rc)
		return rc;
	if (d->timeouts_differ) {
		d->plan.timeouts = d->file.timeouts;
		d->plan.timeouts_now = d->timeouts;
	}
	rc = plan_apply(&d->plan, "apply");
	if (!rc)
		xdp_change_end(&d->xdp);
	else if (rc != RC_PARTIAL)
		xdp_change_abort(&d->xdp);
	return rc;
}

void declared_undo(struct declared *d, struct undo *u)
{
	const struct kern_timeouts *want = &d->file.timeouts;

	undo_of_plan(u, &d->plan);
	xdp_names_copy(&u->xdp.on, &d->xdp.on);
	xdp_names_copy(&u->xdp.off, &d->xdp.off);
	if (!d->timeouts_differ)
		return;
	u->set = *want;
	u->had.tcp = want->tcp ? d->timeouts.tcp : 0;
	u->had.tcp_fin = want->tcp_fin ? d->timeouts.tcp_fin : 0;
	u->had.udp = want->udp ? d->timeouts.udp : 0;
}

bool declared_differs(const struct declared *d)
{
	return d->plan.done || d->timeouts_differ || xdp_change_any(&d->xdp);
}

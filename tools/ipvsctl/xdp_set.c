// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "kern_xdp.h"
#include "opt.h"
#include "out.h"
#include "xdp_device.h"
#include "xdp_set.h"

/* ---- names ---- */

void xdp_names_add(struct xdp_names *list, const char *name)
{
	void *more = realloc(list->v, (list->n + 1) * sizeof(*list->v));

	if (!more)
		err(3, "out of memory");
	list->v = more;
	strcpy(list->v[list->n++], name);
}

bool xdp_names_have(const struct xdp_names *list, const char *name)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (!strcmp(list->v[i], name))
			return true;
	return false;
}

void xdp_names_copy(struct xdp_names *to, const struct xdp_names *from)
{
	size_t i;

	for (i = 0; i < from->n; i++)
		xdp_names_add(to, from->v[i]);
}

void xdp_names_free(struct xdp_names *list)
{
	free(list->v);
	memset(list, 0, sizeof(*list));
}

/* ---- changes ---- */

/* A device may have more than one name. */
static int index_of(const char *name)
{
	return (int)if_nametoindex(name);
}

static bool is_ours(const struct xdp_programs *p, const char *name)
{
	int ifindex = index_of(name);

	return ifindex && xdp_state_of(p, ifindex) == XDP_STATE_OURS;
}

static bool is_wanted(const int *wanted, size_t n, int ifindex)
{
	while (n)
		if (wanted[--n] == ifindex)
			return true;
	return false;
}

static int check_hidden(const struct xdp_programs *p)
{
	char name[IF_NAMESIZE] = "?";
	size_t i;
	int rc;

	for (i = 0; i < p->n && p->v[i].state != XDP_STATE_HIDDEN; i++)
		;
	if (i == p->n)
		return RC_OK;
	if_indextoname((unsigned int)p->v[i].ifindex, name);
	rc = fail(RC_PERM, name, "its XDP program may not be looked at");
	hint("that needs CAP_SYS_ADMIN");
	return rc;
}

static int read_programs(struct xdp_programs *p)
{
	int rc = kern_xdp_programs(p) ?
		 fail(RC_REFUSED, "xdp", "the devices cannot be listed") : RC_OK;

	return rc ? rc : check_hidden(p);
}

static void compare(struct xdp_change *c, const struct xdp_names *want,
		    const int *wanted, const struct xdp_programs *have)
{
	char name[IF_NAMESIZE];
	size_t i;

	for (i = 0; i < want->n; i++)
		if (!is_ours(have, want->v[i]))
			xdp_names_add(&c->on, want->v[i]);
	for (i = 0; i < have->n; i++)
		if (have->v[i].state == XDP_STATE_OURS &&
		    !is_wanted(wanted, want->n, have->v[i].ifindex) &&
		    if_indextoname((unsigned int)have->v[i].ifindex, name))
			xdp_names_add(&c->off, name);
}

int xdp_change_read(struct xdp_change *c, const struct xdp_names *want)
{
	int *wanted = calloc(want->n + 1, sizeof(*wanted));
	struct xdp_programs have = { 0 };
	int rc = want->n ? xdp_possible() : RC_OK;
	size_t i;

	if (!wanted)
		err(3, "out of memory");
	for (i = 0; i < want->n; i++)
		wanted[i] = index_of(want->v[i]);
	if (!rc)
		rc = read_programs(&have);
	if (!rc)
		compare(c, want, wanted, &have);
	xdp_programs_free(&have);
	free(wanted);
	return rc;
}

void xdp_change_free(struct xdp_change *c)
{
	xdp_names_free(&c->on);
	xdp_names_free(&c->off);
}

bool xdp_change_any(const struct xdp_change *c)
{
	return c->on.n || c->off.n;
}

/* What is no longer there needs no end. */
static void detach(const char *name)
{
	int ifindex = index_of(name);
	int err = ifindex ? kern_xdp_detach(ifindex) : 0;

	if (err && err != -ENOENT && err != -ENODEV)
		note("ipvsctl: %s: XDP stays attached: %s", name, strerror(-err));
}

int xdp_change_begin(const struct xdp_change *c)
{
	int rc = RC_OK;
	size_t i;

	for (i = 0; i < c->on.n && !rc; i++)
		rc = xdp_attach(c->on.v[i]);
	if (rc && !opt.dry_run)
		for (i--; i; i--)
			detach(c->on.v[i - 1]);
	return rc;
}

void xdp_change_abort(const struct xdp_change *c)
{
	size_t i;

	for (i = 0; i < c->on.n && !opt.dry_run; i++)
		detach(c->on.v[i]);
}

static void detach_all(const struct xdp_names *list)
{
	size_t i;

	for (i = 0; i < list->n; i++) {
		if (opt.dry_run)
			plan_step("no-xdp", list->v[i]);
		else
			detach(list->v[i]);
	}
}

void xdp_change_end(const struct xdp_change *c)
{
	detach_all(&c->off);
}

bool xdp_change_back(const struct xdp_change *c)
{
	bool all = true;
	size_t i;

	detach_all(&c->on);
	for (i = 0; i < c->off.n; i++)
		if (xdp_attach(c->off.v[i]))
			all = false;
	return all;
}

int xdp_change_holds(const struct xdp_change *c, bool *holds)
{
	struct xdp_programs now;
	int rc = RC_OK;
	size_t i;

	*holds = true;
	if (!xdp_change_any(c))
		return rc;
	rc = read_programs(&now);
	for (i = 0; i < c->on.n; i++)
		*holds = *holds && is_ours(&now, c->on.v[i]);
	for (i = 0; i < c->off.n; i++)
		*holds = *holds && !is_ours(&now, c->off.v[i]);
	xdp_programs_free(&now);
	return rc;
}

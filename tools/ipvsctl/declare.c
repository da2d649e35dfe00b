// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "declare.h"
#include "declare_server.h"
#include "declare_service.h"
#include "err.h"
#include "phrase.h"
#include "rules.h"
#include "source.h"
#include "svcopt.h"
#include "tree.h"

static const char *const known[] = {
	"version", "ipvsctl", "owner", "scope", "timeouts", "xdp",
	"defaults", "services", NULL
};

struct reader {
	const struct tree *tree;
	struct declaration *d;
	const struct node *defaults;
	size_t servers;
};

static int read_version(const struct tree *t)
{
	const struct node *head = key_find(t->root, "ipvsctl");
	const struct node *value = key_find(t->root, "version");
	const char *what = "version";
	int rc;

	if (head) {
		rc = node_expect(t, head, NODE_MAP, "ipvsctl");
		value = rc ? NULL : key_find(head, "schema");
		what = "schema";
		if (rc)
			return rc;
	}
	if (!value)
		return tree_fail(t, t->root, fail(RC_USAGE, NULL,
			"the file needs: version: 1"));
	if (value->kind == NODE_TEXT && !strcmp(value->text, "1"))
		return RC_OK;
	return tree_fail(t, value, fail(RC_USAGE, NULL,
			"this ipvsctl reads %s 1 only", what));
}

static int read_scope(struct reader *r, const struct node *list)
{
	const struct tree *t = r->tree;
	const struct node *value;
	struct scope *s;
	int rc = node_expect(t, list, NODE_LIST, "scope");

	if (!rc && !list->first)
		return tree_fail(t, list, fail(RC_USAGE, NULL,
			"scope is empty: name a network, or leave it out"));
	for (value = list->first; !rc && value; value = value->next) {
		if (r->d->nscopes == DECLARE_SCOPES)
			return tree_fail(t, value, fail(RC_USAGE, NULL,
				"more than %d networks", DECLARE_SCOPES));
		s = &r->d->scopes[r->d->nscopes++];
		rc = node_expect(t, value, NODE_TEXT, "a network");
		if (!rc)
			rc = tree_fail(t, value,
				       parse_prefix(value->text, "scope",
						    &s->af, &s->addr, &s->len));
	}
	return rc;
}

static int read_owner(struct reader *r, const struct node *value)
{
	const struct tree *t = r->tree;
	int rc = node_expect(t, value, NODE_TEXT, "owner");

	return rc ? rc : tree_fail(t, value,
				   policy_parse_owner(value->text, NULL,
						      r->d->owner));
}

static int read_timeouts(struct reader *r, const struct node *map)
{
	static const char *const kinds[] = { "tcp", "tcp-fin", "udp", NULL };
	struct kern_timeouts *have = &r->d->timeouts;
	uint32_t *const slot[] = { &have->tcp, &have->tcp_fin, &have->udp };
	const struct tree *t = r->tree;
	const struct node *value;
	struct phrase p;
	int i, rc = keys_check(t, map, "timeouts", kinds);

	for (i = 0; kinds[i] && !rc; i++) {
		value = key_find(map, kinds[i]);
		if (!value)
			continue;
		rc = phrase_node(&p, t, NULL, value);
		if (!rc)
			rc = tree_fail(t, value,
				       arg_duration(&p.args, "timeouts",
						    kinds[i], DURATION_MAX,
						    slot[i]));
		if (!rc)
			rc = tree_fail(t, value, arg_end(&p.args, "timeouts"));
	}
	return rc;
}

static int check_device(struct reader *r, const struct node *value)
{
	const struct tree *t = r->tree;
	const char *name = value->text;
	int rc = node_expect(t, value, NODE_TEXT, "a device");

	if (rc)
		return rc;
	if (!name[0] || strlen(name) >= IF_NAMESIZE || strpbrk(name, "/: \t\n"))
		rc = fail(RC_USAGE, "xdp",
			  "\"%s\" is no name of a device: write it as ip link shows it",
			  name);
	else if (xdp_names_have(&r->d->xdp, name))
		rc = fail(RC_USAGE, "xdp", "the device %s is named twice", name);
	else if (r->d->xdp.n == DECLARE_XDP)
		rc = fail(RC_USAGE, "xdp", "more than %d devices", DECLARE_XDP);
	return tree_fail(t, value, rc);
}

static int read_xdp(struct reader *r, const struct node *list)
{
	int rc = node_expect(r->tree, list, NODE_LIST, "xdp");
	const struct node *value;

	r->d->has_xdp = true;
	for (value = rc ? NULL : list->first; value && !rc; value = value->next) {
		rc = check_device(r, value);
		if (!rc)
			xdp_names_add(&r->d->xdp, value->text);
	}
	return rc;
}

/* They are read here once, so that a mistake is found if no service uses them. */
static int read_defaults(struct reader *r, const struct node *map)
{
	static const char *const keys[] = {
		"scheduler", "forward", "weight", "max-conns", "min-conns",
		NULL
	};
	const struct tree *t = r->tree;
	const struct node *scheduler;
	struct service svc = { .id.af = 2 };
	struct server srv = { .weight = 1 };
	int rc = keys_check(t, map, "defaults", keys);

	if (rc)
		return rc;
	scheduler = key_find(map, "scheduler");
	if (scheduler) {
		rc = node_expect(t, scheduler, NODE_TEXT, "scheduler");
		if (!rc)
			rc = tree_fail(t, scheduler,
				       check_scheduler_name(scheduler->text,
							    "defaults"));
	}
	if (!rc)
		rc = declare_server_options(t, map, &svc, &srv);
	r->defaults = map;
	return rc;
}

/* ---- services ---- */

static int cmp_names(const void *a, const void *b)
{
	const struct server *x = *(struct server *const *)a;
	const struct server *y = *(struct server *const *)b;
	int d = server_cmp(x, y);

	return d ? d : x < y ? -1 : x > y;
}

static int check_twice(struct reader *r, const struct node *at,
		       const struct service *svc)
{
	struct server **v = malloc((svc->nservers + 1) * sizeof(*v));
	const struct node *node;
	int rc = RC_OK;
	size_t i, n;

	if (!v)
		err(3, "out of memory");
	for (i = 0; i < svc->nservers; i++)
		v[i] = &svc->servers[i];
	qsort(v, svc->nservers, sizeof(*v), cmp_names);
	for (i = 1; i < svc->nservers && !rc; i++) {
		if (server_cmp(v[i - 1], v[i]))
			continue;
		node = at->first;
		for (n = (size_t)(v[i] - svc->servers); n; n--)
			node = node->next;
		rc = fail(RC_USAGE, svc_text(&svc->id),
			  "the server is named twice: first in line %u",
			  v[i - 1]->line);
		tree_fail(r->tree, node, rc);
	}
	free(v);
	return rc;
}

static int read_servers(struct reader *r, const struct node *list,
			struct service *svc)
{
	const struct node *node;
	struct server srv;
	int rc;

	if (!list || node_is_null(list))
		return RC_OK;
	rc = node_expect(r->tree, list, NODE_LIST, "servers");
	for (node = list->first; !rc && node; node = node->next) {
		if (++r->servers > DECLARE_SERVERS)
			return tree_fail(r->tree, node, fail(RC_USAGE, NULL,
				"more than %d servers", DECLARE_SERVERS));
		rc = declare_server(r->tree, node, r->defaults, svc, &srv);
		if (!rc)
			*server_append(svc) = srv;
	}
	return rc ? rc : check_twice(r, list, svc);
}

static int read_service(struct reader *r, const struct node *map)
{
	struct service_list *list = &r->d->services;
	const struct service *old;
	struct service svc = { .options = NULL };
	int rc;

	if (list->n == L4LB_SERVICES_MAX)
		return tree_fail(r->tree, map, fail(RC_USAGE, NULL,
			"more than %d services", L4LB_SERVICES_MAX));
	rc = declare_service(r->tree, map, r->defaults, &svc);
	old = rc ? NULL : service_find(list, &svc.id);
	if (old)
		rc = fail(RC_USAGE, svc_text(&svc.id),
			  "the service is named twice: first in line %u",
			  old->line);
	if (old)
		tree_fail(r->tree, map, rc);
	if (!rc)
		rc = read_servers(r, key_find(map, "servers"), &svc);
	if (rc)
		service_free(&svc);
	else
		*service_append(list) = svc;
	return rc;
}

static int read_services(struct reader *r)
{
	const struct node *list = key_find(r->tree->root, "services"), *node;
	int rc;

	if (!list)
		return tree_fail(r->tree, r->tree->root, fail(RC_USAGE, NULL,
			"the file needs the key \"services\""));
	if (node_is_null(list))
		return tree_fail(r->tree, list->key, fail(RC_USAGE, NULL,
			"\"services\" needs a list; write [] for none"));
	rc = node_expect(r->tree, list, NODE_LIST, "services");
	for (node = list->first; !rc && node; node = node->next)
		rc = read_service(r, node);
	return rc;
}

static int read_document(struct reader *r)
{
	const struct node *root = r->tree->root, *value;
	int rc = keys_check(r->tree, root, "the file", known);

	if (!rc)
		rc = read_version(r->tree);
	value = rc ? NULL : key_find(root, "owner");
	if (!rc && value)
		rc = read_owner(r, value);
	value = rc ? NULL : key_find(root, "scope");
	if (!rc && value)
		rc = read_scope(r, value);
	value = rc ? NULL : key_find(root, "timeouts");
	if (!rc && value)
		rc = read_timeouts(r, value);
	value = rc ? NULL : key_find(root, "xdp");
	if (!rc && value)
		rc = read_xdp(r, value);
	value = rc ? NULL : key_find(root, "defaults");
	if (!rc && value)
		rc = read_defaults(r, value);
	return rc ? rc : read_services(r);
}

bool declare_is_yaml(const char *text)
{
	static const char *const starts[] = {
		"version:", "services:", "scope:", "timeouts:", "xdp:",
		"defaults:", "---", "%YAML"
	};
	const char *line = text;
	size_t i;

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n')
		for (i = 0; i < ARRAY_SIZE(starts); i++)
			if (!strncmp(line, starts[i], strlen(starts[i])))
				return true;
	return false;
}

int declare_read(const struct source *s, struct declaration *d)
{
	struct tree t;
	struct reader r = { .tree = &t, .d = d };
	int rc;

	memset(d, 0, sizeof(*d));
	rc = tree_parse(s, &t);
	if (!rc)
		rc = read_document(&r);
	if (rc && rules_are(s->text))
		hint("these look like rules of ipvsadm; try: ipvsctl restore FILE, or import FILE");
	tree_free(&t);
	return rc;
}

void declaration_free(struct declaration *d)
{
	service_list_free(&d->services);
	xdp_names_free(&d->xdp);
}

bool declare_in_scope(const struct declaration *d, const struct svc_id *id)
{
	const struct scope *s;
	size_t i;

	for (i = 0; i < d->nscopes; i++) {
		s = &d->scopes[i];
		if (!id->fwmark && ip_in_prefix(id->af, &id->addr, s->af,
						&s->addr, s->len) &&
		    (!svc_is_range(id) || id->prefix_len >= s->len))
			return true;
	}
	return !d->nscopes;
}

// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "declare_server.h"
#include "err.h"
#include "model.h"
#include "phrase.h"
#include "svcopt.h"
#include "tree.h"

/* Keys that name a server, those that set it up, and what `save` and `-j show` print
 * of its state, which is passed over: `restore` goes on with a drain.
 */
static const char *const known[] = {
	"server", "id", "address", "port",
	"forward", "tunnel", "weight", "max-conns", "min-conns",
	"active", "inactive", "persistent", "conns-per-second", "state", "ramp-percent",
	"drain", NULL
};

static const char *const numbers[] = {
	"weight", "max-conns", "min-conns", NULL
};

static int apply(const struct tree *t, const struct node *at,
		 const struct service *svc, struct phrase *p,
		 struct server *srv)
{
	struct srv_opts o;
	int rc = srv_opts_parse(&p->args, &svc->id, &o, false);

	if (!rc)
		srv_opts_apply(srv, &o);
	return tree_fail(t, at, rc);
}

/* {type: gue, port: 6080, csum: true}: the type first, since it sets the rest back. */
static int tunnel(const struct tree *t, const struct node *map,
		  const struct service *svc, struct server *srv)
{
	static const char *const keys[] = {
		"type", "port", "csum", "remcsum", NULL
	};
	struct phrase p;
	const struct node *value;
	int i, rc = keys_check(t, map, "tunnel", keys);

	for (i = 0; keys[i] && !rc; i++) {
		bool on = false;

		value = key_find(map, keys[i]);
		if (!value)
			continue;
		if (i < 2) {
			rc = phrase_node(&p, t, keys[i], value);
		} else {
			rc = node_bool(t, value, &on);
			phrase_begin(&p);
			phrase_word(&p, on ? keys[i] : "no-csum");
			if (!on)
				continue;
		}
		if (!rc)
			rc = apply(t, value, svc, &p, srv);
	}
	return rc;
}

int declare_server_options(const struct tree *t, const struct node *map,
			   const struct service *svc, struct server *srv)
{
	const struct node *value = key_find(map, "forward");
	struct phrase p;
	int i, rc = RC_OK;

	if (value) {
		rc = phrase_node(&p, t, NULL, value);
		if (!rc)
			rc = apply(t, value, svc, &p, srv);
	}
	value = key_find(map, "tunnel");
	if (!rc && value)
		rc = tunnel(t, value, svc, srv);
	for (i = 0; numbers[i] && !rc; i++) {
		value = key_find(map, numbers[i]);
		if (!value)
			continue;
		rc = phrase_node(&p, t, numbers[i], value);
		if (!rc)
			rc = apply(t, value, svc, &p, srv);
	}
	return rc;
}

static int set_name(const struct tree *t, const struct node *at,
		    const char *word, const struct service *svc,
		    struct server *srv)
{
	struct srv_id name;
	int rc = parse_srv_word(word, svc_text(&svc->id), &name);

	if (rc)
		return tree_fail(t, at, rc);
	server_defaults(srv, &svc->id, &name);
	srv->line = at->line;
	srv->column = at->column;
	return RC_OK;
}

/* The first word names the server. */
static int short_form(const struct tree *t, const struct node *node,
		      const struct node *defaults, const struct service *svc,
		      struct server *srv)
{
	struct phrase p;
	int rc = phrase_node(&p, t, NULL, node);

	if (!rc)
		rc = set_name(t, node, arg_next(&p.args), svc, srv);
	if (!rc && defaults)
		rc = declare_server_options(t, defaults, svc, srv);
	return rc ? rc : apply(t, node, svc, &p, srv);
}

static int long_form(const struct tree *t, const struct node *map,
		     const struct node *defaults, const struct service *svc,
		     struct server *srv)
{
	const struct node *name = key_find(map, "server"), *port;
	struct in6_addr v6;
	char word[128];
	int rc = keys_check(t, map, "a server", known);

	if (rc)
		return rc;
	if (!name)
		name = key_find(map, "address");
	if (!name)
		name = key_find(map, "id");
	if (!name)
		return tree_fail(t, map, fail(RC_USAGE, NULL,
			"a server needs the key \"address\""));
	rc = node_expect(t, name, NODE_TEXT, "the address");
	if (rc)
		return rc;
	port = key_find(map, "port");
	if (port)
		rc = node_expect(t, port, NODE_TEXT, "the port");
	if (rc)
		return rc;
	if (!port || !key_is(name, "address"))
		snprintf(word, sizeof(word), key_is(name, "address") &&
			 inet_pton(AF_INET6, name->text, &v6) == 1 ? "[%s]" : "%s",
			 name->text);
	else
		snprintf(word, sizeof(word), strchr(name->text, ':') &&
			 name->text[0] != '[' ? "[%s]:%s" : "%s:%s",
			 name->text, port->text);
	rc = set_name(t, name, word, svc, srv);
	if (!rc && defaults)
		rc = declare_server_options(t, defaults, svc, srv);
	return rc ? rc : declare_server_options(t, map, svc, srv);
}

int declare_server(const struct tree *t, const struct node *node,
		   const struct node *defaults, const struct service *svc,
		   struct server *srv)
{
	int rc = node->kind == NODE_MAP
		? long_form(t, node, defaults, svc, srv)
		: short_form(t, node, defaults, svc, srv);

	return rc ? rc : tree_fail(t, node, server_check(svc, srv));
}

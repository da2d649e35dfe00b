// SPDX-License-Identifier: GPL-2.0
/* Each key becomes the words that set it on a command line, so that the file knows
 * every setting that the commands know, by the same name.
 */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "declare_service.h"
#include "err.h"
#include "model.h"
#include "phrase.h"
#include "svcopt.h"
#include "tree.h"

/* Keys that name a service; those that set it up; the rest of it; and figures that
 * `-j show` prints, which are passed over.
 */
static const char *const known[] = {
	"service", "id", "family", "protocol", "address", "prefix", "port",
	"last-port", "fwmark", "scheduler", "flags", "persistent", "mask", "pe", "ops", "options",
	POLICY_WORDS, "las-bytes", "servers",
	"conns-per-second", "state", NULL
};

static int apply(const struct tree *t, const struct node *at,
		 struct phrase *p, struct service *svc)
{
	struct svc_opts o;
	int rc = svc_opts_parse(&p->args, &svc->id, &o);

	if (!rc)
		rc = arg_end(&p->args, svc_text(&svc->id));
	if (!rc)
		svc_opts_apply(svc, &o);
	return tree_fail(t, at, rc);
}

/* The words @first KEY VALUE for each member. */
static int each_member(const struct tree *t, const struct node *map,
		       const char *first, struct service *svc)
{
	const struct node *value;
	int rc = node_expect(t, map, NODE_MAP, map->key->text);
	struct phrase p, key;
	char *c;

	for (value = map->first; !rc && value; value = value->next) {
		rc = phrase_node(&key, t, value->key->text, value);
		if (rc)
			break;
		/* Options have names of their own, where _ and - differ. */
		for (c = key.word[0]; strcmp(first, "option") && *c; c++)
			if (*c == '_')
				*c = '-';
		phrase_begin(&p);
		phrase_word(&p, first);
		while (arg_peek(&key.args))
			phrase_word(&p, arg_next(&key.args));
		rc = apply(t, value, &p, svc);
	}
	return rc;
}

static int timeouts(const struct tree *t, const struct node *map,
		    struct service *svc)
{
	static const char *const kinds[] = {
		"tcp", "tcp-fin", "udp", "sctp", NULL
	};
	int rc = keys_check(t, map, "timeout", kinds);

	return rc ? rc : each_member(t, map, "timeout", svc);
}

/* One word of the members of a list: "fallback,port". */
static int joined(const struct tree *t, const struct node *list,
		  const char *first, char *text, size_t size)
{
	const struct node *value;
	size_t used = 0;
	int rc = node_expect(t, list, NODE_LIST, first);

	text[0] = '\0';
	for (value = list->first; !rc && value; value = value->next) {
		rc = node_expect(t, value, NODE_TEXT, first);
		if (!rc)
			rc = node_says(t, value, first);
		if (rc)
			break;
		used += (size_t)snprintf(text + used, size - used, "%s%s",
					 used ? "," : "", value->text);
		if (used >= size)
			rc = tree_fail(t, value, fail(RC_USAGE, NULL,
						      "the list is too long"));
	}
	return rc;
}

static int flags(const struct tree *t, const struct node *value,
		 struct service *svc)
{
	struct phrase p;
	char text[128];
	int rc;

	if (value->kind == NODE_TEXT) {
		rc = phrase_node(&p, t, "flags", value);
		return rc ? rc : apply(t, value, &p, svc);
	}
	rc = joined(t, value, "flags", text, sizeof(text));
	if (rc || !text[0])
		return rc;
	phrase_begin(&p);
	phrase_word(&p, "flags");
	phrase_word(&p, text);
	return apply(t, value, &p, svc);
}

static int persistent(const struct tree *t, const struct node *value,
		      struct service *svc)
{
	struct phrase p;
	bool on;
	int rc;

	if (node_is_null(value))
		return RC_OK;
	if (value->kind == NODE_TEXT && (!strcmp(value->text, "true") ||
					 !strcmp(value->text, "false"))) {
		rc = node_bool(t, value, &on);
		phrase_begin(&p);
		phrase_word(&p, on ? "persistent" : "no-persistent");
	} else {
		rc = phrase_node(&p, t, "persistent", value);
	}
	return rc ? rc : apply(t, value, &p, svc);
}

static int priority(const struct tree *t, const struct node *map,
		    const struct node *value, struct service *svc)
{
	const struct node *ends = key_find(map, "las-bytes");
	struct phrase p;
	char text[128];
	int rc = phrase_node(&p, t, "priority", value);

	if (!rc && ends) {
		rc = joined(t, ends, "las-bytes", text, sizeof(text));
		if (!rc && text[0])
			phrase_word(&p, text);
	}
	return rc ? rc : apply(t, value, &p, svc);
}

static int ops(const struct tree *t, const struct node *value,
	       struct service *svc)
{
	struct phrase p;
	bool on = false;
	int rc = node_bool(t, value, &on);

	phrase_begin(&p);
	phrase_word(&p, on ? "ops" : "no-ops");
	return rc ? rc : apply(t, value, &p, svc);
}

/* Is it a key that is read elsewhere, or only a figure? */
static bool is_other(const struct node *value)
{
	static const char *const others[] = {
		"service", "id", "family", "protocol", "address", "prefix", "port",
		"last-port", "fwmark", "scheduler", "servers", "las-bytes",
		"conns-per-second", "state", NULL
	};
	int i;

	for (i = 0; others[i]; i++)
		if (key_is(value, others[i]))
			return true;
	return false;
}

static int setting(const struct tree *t, const struct node *map,
		   const struct node *value, struct service *svc)
{
	struct phrase p;
	int i, rc;

	if (is_other(value))
		return RC_OK;
	if (key_is(value, "flags"))
		return flags(t, value, svc);
	if (key_is(value, "persistent"))
		return persistent(t, value, svc);
	if (key_is(value, "options"))
		return each_member(t, value, "option", svc);
	if (key_is(value, "timeout") && value->kind == NODE_MAP)
		return timeouts(t, value, svc);
	if (key_is(value, "priority"))
		return priority(t, map, value, svc);
	if (key_is(value, "ops"))
		return ops(t, value, svc);
	for (i = 0; !key_is(value, known[i]); i++)
		;
	rc = phrase_node(&p, t, known[i], value);
	return rc ? rc : apply(t, value, &p, svc);
}

static int scheduler(const struct tree *t, const struct node *map,
		     struct service *svc)
{
	const struct node *value = map ? key_find(map, "scheduler") : NULL;
	struct phrase p;
	int rc;

	if (!value)
		return RC_OK;
	rc = phrase_node(&p, t, "scheduler", value);
	return rc ? rc : apply(t, value, &p, svc);
}

/* The text of the member @name, or NULL. */
static const char *text_of(const struct node *map, const char *name)
{
	const struct node *value = key_find(map, name);

	return value && value->kind == NODE_TEXT ? value->text : NULL;
}

/* The name in the keys that `save -F json` writes beside "id". */
static bool parts(const struct node *map, char *word, size_t size)
{
	const char *proto = text_of(map, "protocol");
	const char *addr = text_of(map, "address");
	const char *port = text_of(map, "port");
	const char *last = text_of(map, "last-port");
	const char *len = text_of(map, "prefix");
	const char *mark = text_of(map, "fwmark");
	const char *family = text_of(map, "family");

	if (mark)
		snprintf(word, size, "fwm%s:%s", family &&
			 !strcmp(family, "inet6") ? "6" : "", mark);
	else if (proto && addr && port)
		snprintf(word, size, strchr(addr, ':') ? "%s:[%s]%s%s:%s%s%s"
			 : "%s:%s%s%s:%s%s%s", proto, addr, len ? "/" : "",
			 len ? len : "", port, last ? "-" : "", last ? last : "");
	return mark || (proto && addr && port);
}

static int ident(const struct tree *t, const struct node *map,
		 struct svc_id *id)
{
	const struct node *name = key_find(map, "service");
	struct svc_id other;
	char word[160];
	struct phrase p;
	int rc;

	if (!name)
		name = key_find(map, "id");
	if (!name && !parts(map, word, sizeof(word)))
		return tree_fail(t, map, fail(RC_USAGE, NULL,
			"a service needs the key \"service\", as in: service: tcp 192.0.2.10:80"));
	if (name) {
		rc = phrase_node(&p, t, NULL, name);
	} else {
		phrase_begin(&p);
		phrase_word(&p, word);
		rc = RC_OK;
		name = map;
	}
	if (!rc)
		rc = tree_fail(t, name, parse_svc_id(&p.args, id));
	if (!rc)
		rc = tree_fail(t, name, arg_end(&p.args, NULL));
	if (rc || name == map || !parts(map, word, sizeof(word)))
		return rc;
	phrase_begin(&p);
	phrase_word(&p, word);
	rc = tree_fail(t, map, parse_svc_id(&p.args, &other));
	if (!rc && !svc_id_equal(id, &other))
		rc = tree_fail(t, name, fail(RC_USAGE, NULL,
					     "this says %s, other keys say %s",
					     svc_text(id), word));
	return rc;
}

int declare_service(const struct tree *t, const struct node *map,
		    const struct node *defaults, struct service *svc)
{
	const struct node *value;
	struct svc_id id;
	int rc = keys_check(t, map, "a service", known);

	if (!rc)
		rc = ident(t, map, &id);
	if (rc)
		return rc;
	service_defaults(svc, &id);
	svc->line = map->line;
	svc->column = map->column;
	/* Another scheduler has other options, so it comes first. */
	rc = scheduler(t, defaults, svc);
	if (!rc)
		rc = scheduler(t, map, svc);
	for (value = map->first; !rc && value; value = value->next)
		rc = setting(t, map, value, svc);
	return rc ? rc : tree_fail(t, map, service_check(svc));
}

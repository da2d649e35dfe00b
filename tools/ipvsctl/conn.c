// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl conn`: connections. They are printed while they are read: there may be a
 * million.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "backend.h"
#include "cmd.h"
#include "conn_filter.h"
#include "conn_log.h"
#include "conn_walk.h"
#include "err.h"
#include "handover.h"
#include "ident.h"
#include "kern.h"
#include "kern_conn.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "proc.h"
#include "refuse.h"
#include "wire.h"

struct walk {
	const struct conn_filter *filter;
	uint32_t seen;
	json_t *counts;		/* conn count: name -> number */
	int by;
	uint32_t prefix;
};

static const char *service_name(const struct conn *c)
{
	struct svc_id id = {
		.af = c->af, .proto = c->proto, .fwmark = c->fwmark,
		.addr = c->vip, .port = c->vport,
	};

	return svc_text(&id);
}

/* Keys for what only netlink tells. */
static void known_json(json_t *o, const struct conn *c)
{
	const char *forward = forward_name(c->forward);
	const char *fast = c->fast_server ? "server" : "no";

	json_object_set_new(o, "forward", forward ? json_string(forward)
						  : json_integer(c->forward));
	if (c->template) {
		json_object_set_new(o, "holders", json_integer(c->holders));
		return;
	}
	if (c->mark)
		json_object_set_new(o, "fwmark", json_integer(c->mark));
	if (c->fast_client)
		fast = c->fast_server ? "both" : "client";
	json_object_set_new(o, "fast_path", json_string(fast));
	if (!c->has_local)
		return;
	json_object_set_new(o, "local", json_string(ip_text(c->af, &c->local)));
	json_object_set_new(o, "local_port", json_integer(c->local_port));
}

static json_t *conn_json(const struct conn *c)
{
	json_t *o = json_object();

	if (c->fwmark) {
		json_object_set_new(o, "fwmark", json_integer(c->fwmark));
	} else {
		json_object_set_new(o, "protocol",
				    json_string(proto_name(c->proto)));
		json_object_set_new(o, "vip",
				    json_string(ip_text(c->af, &c->vip)));
		json_object_set_new(o, "vport", json_integer(c->vport));
	}
	json_object_set_new(o, "client",
			    json_string(ip_text(c->af, &c->client)));
	json_object_set_new(o, "client_port", json_integer(c->client_port));
	json_object_set_new(o, "server",
			    json_string(ip_text(c->server_af, &c->server)));
	json_object_set_new(o, "server_port", json_integer(c->server_port));
	json_object_set_new(o, "state", json_string(c->state));
	json_object_set_new(o, "expires", json_integer(c->expires));
	json_object_set_new(o, "template", json_boolean(c->template));
	if (c->known)
		known_json(o, c);
	if (c->pe[0])
		json_object_set_new(o, "pe", json_pack("{s:s, s:s}", "name",
						       c->pe, "data",
						       c->pe_data));
	return o;
}

/* Printed with the first connection, when it is known that the list can be
 * read.
 */
static void show_head(void)
{
	int wide = opt.family == AF_INET6 ? 47 : 23;

	if (opt.json) {
		fputs("{\"ipvsctl\":", stdout);
		print_value(envelope());
		fputs(",\"connections\":[", stdout);
	} else if (!opt.no_header) {
		printf("%-*s %-*s %-*s %-11s %7s\n", wide, "CLIENT", wide + 4,
		       "SERVICE", wide, "SERVER", "STATE", "EXPIRES");
	}
}

static bool show_one(const struct conn *c, void *arg)
{
	struct walk *w = arg;

	if (!w->seen)
		show_head();
	if (opt.json) {
		if (w->seen)
			fputs(opt.pretty ? ",\n" : ",", stdout);
		print_value(conn_json(c));
	} else {
		int wide = opt.family == AF_INET6 ? 47 : 23;

		printf("%-*s %-*s %-*s %-11s %7u%s%s%s %s\n", wide,
		       ip_port_text(c->af, &c->client, c->client_port),
		       wide + 4, service_name(c), wide,
		       ip_port_text(c->server_af, &c->server, c->server_port),
		       c->state, c->expires, c->template ? "  template" : "",
		       c->pe[0] ? " " : "", c->pe, c->pe_data);
	}
	w->seen++;
	return !w->filter->limit || w->seen < w->filter->limit;
}

static int conn_show(struct args *a)
{
	struct conn_filter f = { .af = (uint16_t)opt.family };
	struct walk w = { .filter = &f };
	int rc = RC_OK;

	while (!rc && arg_peek(a))
		rc = conn_filter_word(a, &f);
	if (!rc && opt.columns)
		rc = fail(RC_USAGE, NULL,
			  "conn show has fixed columns; select with awk, or with -j and jq");
	if (rc)
		return rc;
	rc = conn_walk(&f, show_one, &w);
	if (rc)
		return rc;
	if (!w.seen)
		show_head();
	if (opt.json)
		puts("]}");
	return RC_OK;
}

enum { BY_SERVICE, BY_SERVER, BY_STATE, BY_CLIENT };

static int parse_by(struct args *a, struct walk *w)
{
	static const char *const known[] = {
		"service", "server", "state", "client", "client/LEN", NULL
	};
	const char *word;
	int rc = arg_value(a, NULL, "by", &word);

	if (rc)
		return rc;
	for (w->by = BY_SERVICE; w->by <= BY_CLIENT; w->by++)
		if (!strcmp(word, known[w->by]))
			return RC_OK;
	w->by = BY_CLIENT;
	if (!strncmp(word, "client/", 7) &&
	    parse_u32(word + 7, 0, 128, &w->prefix))
		return RC_OK;
	return arg_unknown(NULL, "grouping", word, known);
}

static const char *client_net(const struct conn *c, uint32_t len)
{
	uint32_t max = c->af == AF_INET ? 32 : 128, i;
	struct ip net = c->client;
	static char text[64];

	if (len > max)
		len = max;
	for (i = len; i < max; i++)
		net.b[i / 8] &= (uint8_t)~(0x80 >> (i % 8));
	if (len == max)
		return ip_text(c->af, &net);
	snprintf(text, sizeof(text), "%s/%u", ip_text(c->af, &net), len);
	return text;
}

static bool count_one(const struct conn *c, void *arg)
{
	const char *name = NULL;
	struct walk *w = arg;
	json_t *old;

	w->seen++;
	switch (w->by) {
	case BY_SERVICE:
		name = service_name(c);
		break;
	case BY_SERVER:
		name = ip_port_text(c->server_af, &c->server, c->server_port);
		break;
	case BY_STATE:
		name = c->state;
		break;
	case BY_CLIENT:
		name = client_net(c, w->prefix);
		break;
	}
	old = name ? json_object_get(w->counts, name) : NULL;
	if (old)
		json_integer_set(old, json_integer_value(old) + 1);
	else if (name)
		json_object_set_new(w->counts, name, json_integer(1));
	return true;
}

static int print_counts(const struct walk *w, uint32_t limit)
{
	static const struct column cols[] = {
		[0] = { "name", "NAME" },
		[1] = { "conns", "CONNS", .right = true },
	};
	const char *key;
	struct table *t;
	json_t *value;
	int rc = table_new(&t, cols, 2, NULL);

	if (rc)
		return rc;
	json_object_foreach(w->counts, key, value) {
		struct row *row;

		if (limit && !limit--)
			break;
		row = table_row(t, NULL);
		table_cell(t, row, 0, "%s", key);
		table_cell(t, row, 1, "%lld",
			   (long long)json_integer_value(value));
	}
	return table_print(t);
}

static int print_count(struct walk *w)
{
	json_t *doc;

	if (opt.json) {
		doc = doc_new();
		json_object_set_new(doc, "connections", json_integer(w->seen));
		if (w->by >= 0)
			json_object_set(doc, "by", w->counts);
		return print_doc(doc);
	}
	if (w->by >= 0)
		return print_counts(w, w->filter->limit);
	printf("%u\n", w->seen);
	return RC_OK;
}

static int conn_count(struct args *a)
{
	struct conn_filter f = { .af = (uint16_t)opt.family };
	struct walk w = { .filter = &f, .by = -1, .prefix = 128 };
	int rc = RC_OK;

	w.counts = json_object();
	while (!rc && arg_peek(a))
		rc = arg_accept(a, "by") ? parse_by(a, &w) : conn_filter_word(a, &f);
	if (!rc)
		rc = conn_walk(&f, count_one, &w);
	if (!rc)
		rc = print_count(&w);
	json_decref(w.counts);
	return rc;
}

static bool count_only(const struct conn *c, void *arg)
{
	struct walk *w = arg;

	(void)c;
	w->seen++;
	return true;
}

/* What would be killed, for --dry-run and for whoever forgot the filter. */
static int count_all(const struct conn_filter *f, uint32_t *seen)
{
	struct walk w = { .filter = f };
	int rc = conn_walk(f, count_only, &w);

	*seen = w.seen;
	return rc;
}

static int report_killed(uint64_t count)
{
	json_t *doc;

	if (opt.json) {
		doc = doc_new();
		json_object_set_new(doc, "killed",
				    json_integer((json_int_t)count));
		return print_doc(doc);
	}
	if (!opt.quiet)
		printf("killed %llu connections\n", (unsigned long long)count);
	return RC_OK;
}

static int kill_all_refused(const struct conn_filter *f)
{
	uint32_t seen;
	int rc = count_all(f, &seen);

	if (rc)
		return rc;
	rc = fail(RC_USAGE, "conn kill", "no filter: this would end all %u connections",
		  seen);
	hint("a filter names some; try: conn show server SRV");
	return rc;
}

static int dry_kill(const struct conn_filter *f)
{
	char what[64];
	uint32_t seen;
	int rc = count_all(f, &seen);

	if (rc)
		return rc;
	snprintf(what, sizeof(what), "%u connections", seen);
	kern_announce("kill", what);
	return RC_OK;
}

static int cannot_kill(void)
{
	int rc = fail(RC_BACKEND, "conn kill",
		      "the module %s has no command that ends connections",
		      backend_name());

	hint_module();
	hint("with net.ipv4.vs.expire_nodest_conn=1, deleting a server ends its connections");
	return rc;
}

static int conn_kill(struct args *a)
{
	struct conn_filter f = { .af = (uint16_t)opt.family };
	bool any = arg_peek(a) || f.af;
	uint64_t count;
	int rc = RC_OK, err;

	while (!rc && arg_peek(a))
		rc = conn_filter_word(a, &f);
	if (!rc && f.limit)
		rc = fail(RC_USAGE, "conn kill",
			  "limit belongs to conn show: kill ends all that match");
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	if (!backend_is_l4lb())
		return cannot_kill();
	if (opt.dry_run)
		return dry_kill(&f);
	if (!any && !(opt.given & OPT_YES))
		return kill_all_refused(&f);
	err = kern_conns_kill(&f, opt.given & OPT_RESET, &count);
	if (err == -EOPNOTSUPP)
		return cannot_kill();
	return err ? refuse(err, NULL, "ending the connections")
		   : report_killed(count);
}

static const struct verb verbs[] = {
	{ "show", conn_show, "[CFILT|limit N]...", "list connections", 0 },
	{ "count", conn_count,
	  "[by {service|server|state|client[/LEN]}] [CFILT|limit N]...",
	  "count connections, all or in groups", 0 },
	{ "kill", conn_kill,
	  "[CFILT]...",
	  "end the connections that match", OPT_YES | OPT_RESET },
	{ "log", conn_log, "[CFILT|limit N]...",
	  "print a line for each connection that ends, until interrupted",
	  OPT_IPFIX },
	{ "export", conn_export, "FILE", "write all into a file", 0 },
	{ "import", conn_import, "FILE", "take those of a file", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_conn = { "conn", "c", verbs, "connections", NOUN_VERBS };

// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl monitor`: a line for each event, until it is interrupted. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "backend.h"
#include "cmd.h"
#include "err.h"
#include "follow.h"
#include "kern.h"
#include "kern_event.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "wire.h"

enum {
	SERVICE	= 1 << 0,
	SERVER	= 1 << 1,
	LOAD	= 1 << 2,
	DRAIN	= 1 << 3,
	TABLE	= 1 << 4,
	PEER	= 1 << 5,
	ALL	= (1 << 6) - 1,
};

/* The order of enum l4lb_event. */
static const struct kind {
	const char *word;	/* in JSON, and in text unless there is .text */
	const char *text;
	unsigned int class;
	const char *counts;	/* what .count is in JSON */
} kinds[] = {
	[L4LB_EVENT_SERVICE_ADDED] = { "service-added", NULL, SERVICE, NULL },
	[L4LB_EVENT_SERVICE_CHANGED] = { "service-changed", NULL, SERVICE, NULL },
	[L4LB_EVENT_SERVICE_DELETED] = { "service-deleted", NULL, SERVICE, NULL },
	[L4LB_EVENT_SCHEDULER] = { "scheduler", NULL, SERVICE, NULL },
	[L4LB_EVENT_SERVER_ADDED] = { "server-added", NULL, SERVER, NULL },
	[L4LB_EVENT_SERVER_CHANGED] = { "server-changed", NULL, SERVER, NULL },
	[L4LB_EVENT_SERVER_DELETED] = { "server-deleted", NULL, SERVER, NULL },
	[L4LB_EVENT_WEIGHT] = { "weight", NULL, SERVER, "weight_before" },
	[L4LB_EVENT_OVERLOADED] = { "overloaded", NULL, LOAD, NULL },
	[L4LB_EVENT_RELIEVED] = { "relieved", NULL, LOAD, NULL },
	[L4LB_EVENT_DRAINED] = { "drained", NULL, DRAIN, NULL },
	[L4LB_EVENT_FULL] = { "full", "table full", TABLE, "connections" },
	[L4LB_EVENT_ROOM] = { "room", "table has room", TABLE, "connections" },
	[L4LB_EVENT_FLOOD] = { "flood", "flood begins", TABLE, "half_open" },
	[L4LB_EVENT_FLOOD_OVER] = { "flood-over", "flood is over", TABLE,
				    "half_open" },
	[L4LB_EVENT_SHADOW_LOST] = { "shadow-lost", NULL, SERVICE, NULL },
};

static const struct kind lost_kind = { "lost", NULL, ALL, "events" };
static const struct kind peer_kind = { "peer", NULL, PEER, NULL };
/* After a loss: what there is. */
static const struct kind is_kind = { "is", NULL, SERVICE | SERVER, NULL };

static const struct { const char *word; unsigned int class; } classes[] = {
	{ "service", SERVICE }, { "server", SERVER }, { "load", LOAD },
	{ "drain", DRAIN }, { "table", TABLE }, { "peer", PEER }, { "all", ALL },
};

struct monitor {
	unsigned int wanted;
	bool lost;
};

static const char *now_text(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return follow_time(ts.tv_sec * 1000000000LL + ts.tv_nsec);
}

static const char *peer_state(uint32_t state)
{
	static const char *const names[] = { "absent", "joining", "in step" };

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

static void print_text(const struct kind *kind, const struct event *e)
{
	const struct server *srv = &e->srv;

	if (opt.given & OPT_TIMESTAMP)
		printf("%s ", now_text());
	fputs(kind->text ? kind->text : kind->word, stdout);
	if (e->has_service)
		printf(" %s", svc_text(&e->svc.id));
	if (e->has_server)
		printf(" %s", ip_port_text(srv->af, &srv->addr, srv->port));
	else if (e->svc.scheduler[0])
		printf(" scheduler %s", e->svc.scheduler);
	if (e->what == EVENT_PEER)
		printf(" %s %s", ip_text(e->peer_af, &e->peer),
		       peer_state(e->peer_state));
	else if (e->what == L4LB_EVENT_WEIGHT)
		printf(" %llu -> %u", (unsigned long long)e->count, srv->weight);
	else if (e->has_server)
		printf(" weight %u active %u inactive %u persistent %u",
		       srv->weight, srv->active, srv->inactive,
		       srv->persistent);
	else if (kind->counts)
		printf(" %llu", (unsigned long long)e->count);
	putchar('\n');
}

static void print_json(const struct kind *kind, const struct event *e)
{
	json_t *o = json_pack("{s:s}", "event", kind->word), *more = NULL;
	const struct server *srv = &e->srv;

	if (opt.given & OPT_TIMESTAMP)
		json_object_set_new(o, "time", json_string(now_text()));
	if (e->has_service)
		json_object_set_new(o, "service",
				    json_string(svc_word(&e->svc.id)));
	if (e->svc.scheduler[0])
		json_object_set_new(o, "scheduler",
				    json_string(e->svc.scheduler));
	if (e->has_server)
		more = json_pack("{s:s, s:I, s:I, s:I, s:I}", "server",
				 ip_port_text(srv->af, &srv->addr, srv->port),
				 "weight", (json_int_t)srv->weight,
				 "active", (json_int_t)srv->active,
				 "inactive", (json_int_t)srv->inactive,
				 "persistent", (json_int_t)srv->persistent);
	if (e->what == EVENT_PEER)
		more = json_pack("{s:s, s:s}", "peer",
				 ip_text(e->peer_af, &e->peer),
				 "state", peer_state(e->peer_state));
	if (more)
		json_object_update_new(o, more);
	if (kind->counts)
		json_object_set_new(o, kind->counts,
				    json_integer((json_int_t)e->count));
	print_doc(o);
}

static void print(const struct kind *kind, const struct event *e)
{
	if (opt.json)
		print_json(kind, e);
	else
		print_text(kind, e);
}

static void take(const struct event *e, void *arg)
{
	const struct kind *kind = NULL;
	struct monitor *m = arg;

	if (e->what == EVENT_LOST) {
		kind = &lost_kind;
		m->lost = true;
	} else if (e->what == EVENT_PEER) {
		kind = &peer_kind;
	} else if (e->what < ARRAY_SIZE(kinds) && kinds[e->what].word) {
		kind = &kinds[e->what];
	}
	if (!kind || !(kind->class & m->wanted) ||
	    (e->has_service && opt.family && e->svc.id.af != opt.family))
		return;
	print(kind, e);
}

/* Prints what there is, for whoever follows the events and has missed some. */
static int show_state(const struct monitor *m)
{
	struct service_list list = { 0 };
	struct event e = { .has_service = true };
	int err = kern_services(&list, true);
	size_t i, j;

	for (i = 0; !err && i < list.n; i++) {
		e.svc = list.v[i];
		if (opt.family && e.svc.id.af != opt.family)
			continue;
		e.has_server = false;
		if (m->wanted & SERVICE)
			print(&is_kind, &e);
		e.has_server = true;
		for (j = 0; m->wanted & SERVER && j < e.svc.nservers; j++) {
			e.srv = e.svc.servers[j];
			print(&is_kind, &e);
		}
	}
	service_list_free(&list);
	return err;
}

static bool read_events(int *err, void *arg)
{
	struct monitor *m = arg;

	*err = kern_event_read(take, m);
	if (!*err && m->lost)
		*err = show_state(m);
	m->lost = false;
	return true;
}

static void print_head(const struct monitor *m)
{
	json_t *doc = doc_new(), *list = json_array();
	size_t i;

	for (i = 0; classes[i].class != ALL; i++)
		if (classes[i].class & m->wanted)
			json_array_append_new(list,
					      json_string(classes[i].word));
	json_object_set_new(doc, "monitor", list);
	print_doc(doc);
}

static int parse_classes(struct args *a, struct monitor *m)
{
	const char *known[ARRAY_SIZE(classes) + 1] = { NULL };
	const char *word;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(classes); i++)
		known[i] = classes[i].word;
	while ((word = arg_next(a))) {
		for (i = 0; known[i] && strcmp(known[i], word); i++)
			;
		if (!known[i])
			return arg_unknown(NULL, "class of events", word, known);
		m->wanted |= classes[i].class;
	}
	if (!m->wanted)
		m->wanted = ALL;
	return RC_OK;
}

static int no_events(void)
{
	int rc = fail(RC_BACKEND, NULL, "the module %s tells no events",
		      backend_name());

	if (backend_is_l4lb())
		hint_module();
	else
		hint("try: ipvsctl show, again and again, or load l4lb");
	return rc;
}

static int monitor(struct args *a)
{
	struct monitor m = { 0 };
	int rc, err;

	rc = parse_classes(a, &m);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_event_open();
	if (err == -EOPNOTSUPP)
		return no_events();
	if (err)
		return refuse(err, NULL, "listening to events");
	follow_begin();
	if (opt.json)
		print_head(&m);
	else
		note("ipvsctl: listening");
	err = follow(kern_event_fd(), read_events, &m);
	kern_event_close();
	return err < 0 ? follow_failed(err, "reading events") : RC_OK;
}

static const struct verb verbs[] = {
	{ "monitor", monitor, "[service|server|load|drain|table|peer|all]...",
	  "print a line for each event, until interrupted", OPT_TIMESTAMP },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_monitor = {
	"monitor", NULL, verbs, "what happens, while it happens", 1
};

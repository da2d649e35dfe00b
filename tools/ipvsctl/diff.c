// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl diff`: what apply would change, in the form of diff -u. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "declared.h"
#include "describe.h"
#include "err.h"
#include "opt.h"
#include "out.h"

struct printer {
	const struct service *head;	/* the service whose name was printed */
	json_t *list;			/* with -j, instead of lines */
};

static void print_line(struct printer *pr, char sign, const char *indent,
		       const char *text)
{
	if (pr->list)
		json_array_append_new(pr->list,
				      json_sprintf("%c %s%s", sign, indent,
						   text));
	else
		out_diff(sign, indent, text);
}

/* The name of a service that itself is the same, above its servers. */
static void print_head(struct printer *pr, const struct service *svc)
{
	char text[128];

	if (pr->head == svc)
		return;
	pr->head = svc;
	snprintf(text, sizeof(text), "service %s", svc_text(&svc->id));
	print_line(pr, ' ', "", text);
}

static void settings(const struct service *svc, char *text, size_t size)
{
	const char *options = describe_options(svc);

	snprintf(text, size, "scheduler %s%s%s", svc->scheduler,
		 options[0] ? " " : "", options);
}

static void print_service(struct printer *pr, const struct plan_item *item)
{
	const struct service *svc = item->svc ? item->svc : item->old;
	char text[2048];

	if (item->step == PLAN_SAME)
		return;
	if (item->step != PLAN_CHANGE) {
		pr->head = svc;
		print_line(pr, item->step == PLAN_ADD ? '+' : '-', "",
			   describe_service(svc));
		return;
	}
	print_head(pr, svc);
	settings(item->old, text, sizeof(text));
	print_line(pr, '-', "  ", text);
	settings(svc, text, sizeof(text));
	print_line(pr, '+', "  ", text);
}

/* "server 10.0.0.11:8080 nat weight 3", without the service's name. */
static void print_one(struct printer *pr, char sign, const struct svc_id *id,
		      const struct server *srv)
{
	const char *line = describe_server(id, srv);
	size_t skip = strlen("server ") + strlen(svc_text(id)) + 1;
	char text[512];

	snprintf(text, sizeof(text), "server %s", line + skip);
	print_line(pr, sign, "  ", text);
}

static void print_server(struct printer *pr, const struct plan_item *item)
{
	const struct svc_id *id = &item->svc->id;
	struct server same_weight;
	char text[256];

	if (item->step == PLAN_SAME)
		return;
	print_head(pr, item->svc);
	if (item->step == PLAN_CHANGE) {
		same_weight = *item->srv;
		same_weight.weight = item->old_srv->weight;
		if (plan_same_server(&same_weight, item->old_srv)) {
			snprintf(text, sizeof(text),
				 "server %s weight %u -> %u",
				 ip_port_text(item->srv->af, &item->srv->addr,
					      item->srv->port),
				 item->old_srv->weight, item->srv->weight);
			print_line(pr, '~', "  ", text);
			return;
		}
	}
	if (item->old_srv)
		print_one(pr, '-', id, item->old_srv);
	if (item->srv)
		print_one(pr, '+', id, item->srv);
}

static int see(struct plan *p, const struct plan_item *item, void *arg)
{
	(void)p;
	if (item->srv || item->old_srv)
		print_server(arg, item);
	else
		print_service(arg, item);
	return RC_OK;
}

static void print_timeouts(struct printer *pr, const struct declared *d)
{
	struct kern_timeouts had = d->timeouts;
	const struct kern_timeouts *want = &d->file.timeouts;

	if (!d->timeouts_differ)
		return;
	had.tcp = want->tcp ? had.tcp : 0;
	had.tcp_fin = want->tcp_fin ? had.tcp_fin : 0;
	had.udp = want->udp ? had.udp : 0;
	print_line(pr, '-', "", describe_timeouts(&had));
	print_line(pr, '+', "", describe_timeouts(want));
}

static int finish(struct printer *pr, const struct declared *d)
{
	const struct plan *p = &d->plan;
	const struct tally *s = &p->services, *r = &p->servers;
	json_t *doc;

	if (pr->list) {
		doc = doc_new();
		json_object_set_new(doc, "diff", pr->list);
		return print_doc(doc);
	}
	if (opt.quiet)
		return RC_OK;
	if (declared_differs(d))
		printf("plan: %zu added, %zu changed, %zu removed\n",
		       s->added + r->added,
		       s->changed + r->changed + d->timeouts_differ,
		       s->removed + r->removed);
	if (s->extra || r->extra)
		note("left alone, not in the file: %zu services, and %zu servers of the others",
		     s->extra, r->extra);
	return RC_OK;
}

static int diff(struct args *a)
{
	struct printer pr = { .list = opt.json ? json_array() : NULL };
	struct declared d;
	int rc = declared_open(&d, a, "diff");

	if (!rc) {
		print_timeouts(&pr, &d);
		plan_walk(&d.plan, see, &pr);
		rc = finish(&pr, &d);
	}
	if (!rc && declared_differs(&d))
		rc = RC_DIFF;
	declared_close(&d);
	return rc;
}

static const struct verb verbs[] = {
	{ "diff", diff, "FILE",
	  "print what apply would change; exit status 1 if there is anything",
	  OPT_PRUNE },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_diff = {
	"diff", NULL, verbs, "print what apply would change", 1
};

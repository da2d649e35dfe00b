// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "describe.h"
#include "difference.h"
#include "err.h"
#include "out.h"
#include "plan.h"
#include "xdp_set.h"

void difference_line(struct difference *d, char sign, const char *indent,
		     const char *text)
{
	if (d->list)
		json_array_append_new(d->list,
				      json_sprintf("%c %s%s", sign, indent,
						   text));
	else
		out_diff(sign, indent, text);
}

static void print_devices(struct difference *d, char sign,
			  const struct xdp_names *list)
{
	char text[IF_NAMESIZE + 16];
	size_t i;

	for (i = 0; i < list->n; i++) {
		snprintf(text, sizeof(text), "xdp dev %s", list->v[i]);
		difference_line(d, sign, "", text);
	}
}

void difference_xdp(struct difference *d, const struct xdp_change *c)
{
	print_devices(d, '-', &c->off);
	print_devices(d, '+', &c->on);
}

/* The name of a service that itself is the same, above its servers. */
static void print_head(struct difference *pr, const struct service *svc)
{
	char text[128];

	if (pr->head == svc)
		return;
	pr->head = svc;
	snprintf(text, sizeof(text), "service %s", svc_text(&svc->id));
	difference_line(pr, ' ', "", text);
}

static void settings(const struct service *svc, char *text, size_t size)
{
	const char *options = describe_options(svc);

	snprintf(text, size, "scheduler %s%s%s", svc->scheduler,
		 options[0] ? " " : "", options);
}

static void print_service(struct difference *pr, const struct plan_item *item)
{
	const struct service *svc = item->svc ? item->svc : item->old;
	char text[2048];

	if (item->step == PLAN_SAME)
		return;
	if (item->step != PLAN_CHANGE) {
		pr->head = svc;
		difference_line(pr, item->step == PLAN_ADD ? '+' : '-', "",
				describe_service(svc));
		return;
	}
	print_head(pr, svc);
	settings(item->old, text, sizeof(text));
	difference_line(pr, '-', "  ", text);
	settings(svc, text, sizeof(text));
	difference_line(pr, '+', "  ", text);
}

/* "server 10.0.0.11:8080 nat weight 3", without the service's name. */
static void print_one(struct difference *pr, char sign, const struct svc_id *id,
		      const struct server *srv)
{
	const char *line = describe_server(id, srv);
	size_t skip = strlen("server ") + strlen(svc_text(id)) + 1;
	char text[512];

	snprintf(text, sizeof(text), "server %s", line + skip);
	difference_line(pr, sign, "  ", text);
}

static void print_server(struct difference *pr, const struct plan_item *item)
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
			difference_line(pr, '~', "  ", text);
			return;
		}
	}
	if (item->old_srv)
		print_one(pr, '-', id, item->old_srv);
	if (item->srv)
		print_one(pr, '+', id, item->srv);
}

int difference_see(struct plan *p, const struct plan_item *item, void *arg)
{
	(void)p;
	if (item->srv || item->old_srv)
		print_server(arg, item);
	else
		print_service(arg, item);
	return RC_OK;
}

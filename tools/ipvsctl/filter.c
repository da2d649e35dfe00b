// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "err.h"
#include "filter.h"
#include "kern.h"
#include "kern_drain.h"
#include "model.h"
#include "opt.h"
#include "refuse.h"
#include "wire.h"

static int parse_sort(struct args *a, struct filter *f)
{
	static const char *const keys[] = { "name", "active", "rate", NULL };
	int i, rc = arg_value(a, NULL, "sort", &f->sort);

	for (i = 0; !rc && keys[i]; i++)
		if (!strcmp(f->sort, keys[i]))
			return RC_OK;
	return rc ? rc : arg_unknown(NULL, "sort key", f->sort, keys);
}

static int parse_proto(struct args *a, struct filter *f)
{
	static const char *const known[] = { "tcp", "udp", "sctp", NULL };
	const char *word;
	int rc = arg_value(a, NULL, "proto", &word);

	f->by_proto = true;
	if (rc || proto_parse(word, &f->proto))
		return rc;
	return arg_unknown(NULL, "protocol", word, known);
}

static int parse_id(struct args *a, struct filter *f, bool server)
{
	int rc;

	if (f->by_id)
		return fail(RC_USAGE, NULL, "two services named; name one");
	f->by_id = true;
	rc = parse_svc_id(a, &f->id);
	/* No filter word begins like an address, or has a dot or a colon. */
	if (rc || !server || !arg_peek(a) ||
	    (!strchr("0123456789[", arg_peek(a)[0]) &&
	     !strchr(arg_peek(a), '.') && !strchr(arg_peek(a), ':')))
		return rc;
	f->by_server = true;
	return parse_srv_id(a, svc_text(&f->id), &f->server);
}

static int filter_word(struct args *a, struct filter *f, bool server)
{
	static const char *const known[] = {
		"tcp", "udp", "sctp", "fwmark", "proto", "vip", "port",
		"scheduler", "down", "overloaded", "sort", NULL
	};
	const char *word = arg_peek(a);
	uint32_t n = 0;
	int rc;

	if (arg_is_svc_id(a))
		return parse_id(a, f, server);
	arg_next(a);
	if (!strcmp(word, "down")) {
		f->down = true;
	} else if (!strcmp(word, "overloaded")) {
		f->overloaded = true;
	} else if (!strcmp(word, "sort")) {
		return parse_sort(a, f);
	} else if (!strcmp(word, "proto")) {
		return parse_proto(a, f);
	} else if (!strcmp(word, "scheduler")) {
		return arg_value(a, NULL, word, &f->scheduler);
	} else if (!strcmp(word, "port")) {
		f->by_port = true;
		rc = arg_u32(a, NULL, word, RANGE(0, 65535), &n);
		f->port = (uint16_t)n;
		return rc;
	} else if (!strcmp(word, "vip")) {
		f->by_vip = true;
		rc = arg_value(a, NULL, word, &word);
		return rc ? rc : parse_prefix(word, NULL, &f->vip_af, &f->vip,
					      &f->vip_len);
	} else {
		return arg_unknown(NULL, "filter", word, known);
	}
	return RC_OK;
}

int filter_parse(struct args *a, struct filter *f, bool server)
{
	int rc = RC_OK;

	memset(f, 0, sizeof(*f));
	while (!rc && arg_peek(a))
		rc = filter_word(a, f, server);
	return rc;
}

static bool has_overloaded(const struct service *svc)
{
	size_t i;

	for (i = 0; i < svc->nservers; i++)
		if (server_is_overloaded(&svc->servers[i]))
			return true;
	return false;
}

static bool passes(const struct filter *f, const struct service *svc)
{
	const struct svc_id *id = &svc->id;

	if (opt.family && id->af != opt.family)
		return false;
	if ((f->by_proto || f->by_vip || f->by_port) && id->fwmark)
		return false;
	if (f->by_proto && id->proto != f->proto)
		return false;
	if (f->by_port && !svc_has_port(id, f->port))
		return false;
	if (f->by_vip && !svc_in_prefix(id, f->vip_af, &f->vip, f->vip_len))
		return false;
	if (f->scheduler && strcmp(svc->scheduler, f->scheduler))
		return false;
	if (f->down && !service_is_down(svc))
		return false;
	return !f->overloaded || has_overloaded(svc);
}

static uint64_t active(const struct service *svc)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < svc->nservers; i++)
		sum += svc->servers[i].active;
	return sum;
}

static int cmp_active(const void *a, const void *b)
{
	uint64_t x = active(a), y = active(b);

	return x < y ? 1 : x > y ? -1 : 0;
}

static int cmp_rate(const void *a, const void *b)
{
	uint64_t x = ((const struct service *)a)->stats.cps;
	uint64_t y = ((const struct service *)b)->stats.cps;

	return x < y ? 1 : x > y ? -1 : 0;
}

static int keep_server(const struct filter *f, struct service *svc)
{
	struct server want, *found;

	memset(&want, 0, sizeof(want));
	want.af = f->server.af;
	want.addr = f->server.addr;
	want.port = f->server.has_port ? f->server.port : svc_server_port(&f->id);
	found = server_find(svc, want.af, &want.addr, want.port);
	if (!found)
		return missing_server(svc, &want);
	svc->servers[0] = *found;
	svc->nservers = 1;
	return RC_OK;
}

int filter_read(const struct filter *f, struct service_list *list)
{
	size_t i, kept = 0;
	int err, rc;

	rc = wire_open();
	if (rc)
		return rc;
	if (f->by_id) {
		struct service *svc = service_append(list);

		err = kern_service(&f->id, svc, true);
		if (err == -ESRCH)
			return missing_service(&f->id);
		if (!err && f->by_server)
			rc = keep_server(f, svc);
	} else {
		bool servers = !f->alone || f->down || f->overloaded || f->sort;

		err = f->config ? kern_config(list)
				: kern_services(list, servers);
	}
	if (!err && !rc)
		err = kern_drains(list);
	if (err)
		return refuse(err, NULL, "reading the services");
	for (i = 0; i < list->n; i++) {
		if (passes(f, &list->v[i]))
			list->v[kept++] = list->v[i];
		else
			service_free(&list->v[i]);
	}
	list->n = kept;
	service_list_moved(list);
	if (f->sort && strcmp(f->sort, "name") && list->n)
		qsort(list->v, list->n, sizeof(*list->v),
		      f->sort[0] == 'a' ? cmp_active : cmp_rate);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0
#include <netinet/in.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "describe.h"
#include "err.h"
#include "filter.h"
#include "model.h"
#include "options.h"
#include "optword.h"
#include "out.h"
#include "repeat.h"
#include "then.h"
#include "view.h"

enum {
	COL_NAME, COL_SCHED, COL_FORWARD, COL_WEIGHT, COL_ACTIVE, COL_INACTIVE,
	COL_RATE, COL_STATE, COL_OPTIONS, COL_PERSISTENT, COL_MAX, COL_MIN,
	NCOLS
};

static const struct column columns[NCOLS] = {
	[COL_NAME] = { "name", "SERVICE / SERVER", .tree = true },
	[COL_SCHED] = { "sched", "SCHED" },
	[COL_FORWARD] = { "fwd", "FWD" },
	[COL_WEIGHT] = { "weight", "WEIGHT", .right = true },
	[COL_ACTIVE] = { "active", "ACTIVE", .right = true },
	[COL_INACTIVE] = { "inact", "INACT", .right = true },
	[COL_RATE] = { "rate", "CONN/s", .right = true },
	[COL_STATE] = { "state", "STATE" },
	[COL_OPTIONS] = { "options", "OPTIONS", .extra = true },
	[COL_PERSISTENT] = { "persist", "PERSIST", .right = true,
			     .extra = true },
	[COL_MAX] = { "max", "MAX", .right = true, .extra = true },
	[COL_MIN] = { "min", "MIN", .right = true, .extra = true },
};

static json_t *tunnel_json(const struct server *srv)
{
	const char *type = tun_type_name(srv->tun_type);
	json_t *tun = json_object();

	if (type) {
		json_object_set_new(tun, "type", json_string(type));
	} else {
		json_object_set_new(tun, "type", json_integer(srv->tun_type));
		json_object_set_new(tun, "type_raw",
				    json_integer(srv->tun_type));
	}
	if (srv->tun_port)
		json_object_set_new(tun, "port", json_integer(srv->tun_port));
	if (srv->tun_flags & IP_VS_TUNNEL_ENCAP_FLAG_CSUM)
		json_object_set_new(tun, "csum", json_true());
	if (srv->tun_flags & IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM)
		json_object_set_new(tun, "remcsum", json_true());
	return tun;
}

/* Of a server with weight 0, so that restore can go on with the drain. */
static json_t *drain_json(const struct server_drain *drain)
{
	const char *then = then_name(drain->then);
	json_t *o = json_object();

	if (drain->weight)
		json_object_set_new(o, "weight_before",
				    json_integer(drain->weight));
	if (drain->then && then)
		json_object_set_new(o, "then", json_string(then));
	if (drain->timed)
		json_object_set_new(o, "seconds_left",
				    json_integer(drain->left));
	return o;
}

static json_t *server_json(const struct server *srv, enum json_detail detail)
{
	uint32_t method = srv->forward & IP_VS_CONN_F_FWD_MASK;
	const char *forward = forward_name(method);
	json_t *o = json_pack("{s:s, s:s, s:i}", "id",
			      ip_port_text(srv->af, &srv->addr, srv->port),
			      "address", ip_text(srv->af, &srv->addr),
			      "port", srv->port);

	json_object_set_new(o, "forward", forward ? json_string(forward)
						  : json_integer(method));
	if (!forward)
		json_object_set_new(o, "forward_raw", json_integer(method));
	if (method == IP_VS_CONN_F_TUNNEL)
		json_object_set_new(o, "tunnel", tunnel_json(srv));
	json_object_set_new(o, "weight", json_integer(srv->weight));
	if (srv->drain.known)
		json_object_set_new(o, "drain", drain_json(&srv->drain));
	if (detail == JSON_LIVE) {
		json_object_set_new(o, "active", json_integer(srv->active));
		json_object_set_new(o, "inactive", json_integer(srv->inactive));
		json_object_set_new(o, "persistent",
				    json_integer(srv->persistent));
	}
	json_object_set_new(o, "max_conns", json_integer(srv->max_conns));
	json_object_set_new(o, "min_conns", json_integer(srv->min_conns));
	if (detail == JSON_LIVE) {
		const char *state = !srv->weight ? "draining"
			: server_is_overloaded(srv) ? "overloaded"
			: srv->ramp.on ? "ramping" : "ok";

		if (srv->ramp.on)
			json_object_set_new(o, "ramp_percent",
					    json_integer(srv->ramp.percent));
		json_object_set_new(o, "conns_per_second",
				    json_integer((json_int_t)srv->stats.cps));
		json_object_set_new(o, "state", json_string(state));
	}
	return o;
}

static void ident_json(json_t *o, const struct svc_id *id)
{
	json_object_set_new(o, "id", json_string(svc_word(id)));
	json_object_set_new(o, "family",
			    json_string(id->af == AF_INET6 ? "inet6" : "inet"));
	if (id->fwmark) {
		json_object_set_new(o, "fwmark", json_integer(id->fwmark));
		return;
	}
	json_object_set_new(o, "protocol", json_string(proto_name(id->proto)));
	json_object_set_new(o, "address",
			    json_string(ip_text(id->af, &id->addr)));
	if (svc_is_range(id))
		json_object_set_new(o, "prefix", json_integer(id->prefix_len));
	json_object_set_new(o, "port", json_integer(id->port));
	if (svc_is_range(id))
		json_object_set_new(o, "last_port", json_integer(id->last_port));
}

static json_t *flags_json(const struct service *svc)
{
	json_t *flags = json_array();
	char buf[128], *word, *save;

	strcpy(buf, describe_flags(svc));
	for (word = strtok_r(buf, ",", &save); word;
	     word = strtok_r(NULL, ",", &save))
		json_array_append_new(flags, json_string(word));
	return flags;
}

static json_t *options_json(const struct service *svc, enum json_detail detail)
{
	json_t *options = json_object();
	size_t i;

	for (i = 0; i < svc->noptions; i++) {
		const struct svc_option *o = &svc->options[i];

		json_object_set_new(options, o->name, !o->path ?
				    json_integer(o->value) :
				    json_string(detail == JSON_EXACT ?
						option_exact(o) : o->path));
	}
	return options;
}

json_t *service_json(const struct service *svc, enum json_detail detail)
{
	bool persistent = svc->flags & IP_VS_SVC_F_PERSISTENT;
	json_t *o = json_object(), *servers = json_array();
	size_t i;

	ident_json(o, &svc->id);
	json_object_set_new(o, "scheduler", json_string(svc->scheduler));
	json_object_set_new(o, "flags", flags_json(svc));
	json_object_set_new(o, "persistent",
			    persistent ? json_integer(svc->timeout)
				       : json_null());
	if (persistent && svc->netmask != netmask_full(svc->id.af)) {
		int len = netmask_len(svc->id.af, svc->netmask);

		json_object_set_new(o, "mask", len >= 0 ? json_integer(len) :
			json_string(describe_mask(svc->id.af, svc->netmask)));
	}
	if (svc->pe[0])
		json_object_set_new(o, "pe", json_string(svc->pe));
	if (svc->flags & IP_VS_SVC_F_ONEPACKET)
		json_object_set_new(o, "ops", json_true());
	if (svc->noptions)
		json_object_set_new(o, "options", options_json(svc, detail));
	policy_to_json(o, &svc->policy);
	if (detail == JSON_LIVE) {
		json_object_set_new(o, "conns_per_second",
				    json_integer((json_int_t)svc->stats.cps));
		json_object_set_new(o, "state",
				    json_string(service_state(svc)));
	}
	for (i = 0; i < svc->nservers; i++)
		json_array_append_new(servers,
				      server_json(&svc->servers[i], detail));
	json_object_set_new(o, "servers", servers);
	return o;
}

static int print_json(const struct service_list *list)
{
	json_t *doc = doc_new(), *services = json_array();
	size_t i;

	if (opt.watch_secs)
		json_object_set_new(doc, "time", json_real(repeat_time()));
	for (i = 0; i < list->n; i++)
		json_array_append_new(services,
				      service_json(&list->v[i], JSON_LIVE));
	json_object_set_new(doc, "services", services);
	return print_doc(doc);
}

static void server_row(struct table *t, struct row *parent,
		       const struct server *srv)
{
	struct row *row = table_row(t, parent);
	const char *state = server_state(srv);

	table_cell(t, row, COL_NAME, "%s",
		   ip_port_text(srv->af, &srv->addr, srv->port));
	table_cell(t, row, COL_FORWARD, "%s", describe_forward(srv));
	table_cell(t, row, COL_WEIGHT, "%u", srv->weight);
	table_cell(t, row, COL_ACTIVE, "%u", srv->active);
	table_cell(t, row, COL_INACTIVE, "%u", srv->inactive);
	table_cell(t, row, COL_PERSISTENT, "%u", srv->persistent);
	table_cell(t, row, COL_MAX, "%u", srv->max_conns);
	table_cell(t, row, COL_MIN, "%u", srv->min_conns);
	table_cell(t, row, COL_RATE, "%llu",
		   (unsigned long long)srv->stats.cps);
	table_cell(t, row, COL_STATE, "%s", state);
	table_color(t, row, COL_STATE, state[0] == 'o' && state[1] == 'k'
		    ? CELL_GOOD : CELL_WARN);
}

static void service_row(struct table *t, const struct service *svc)
{
	unsigned long long active = 0, inactive = 0, persistent = 0;
	struct row *row = table_row(t, NULL);
	const char *state = service_state(svc);
	size_t i;

	for (i = 0; i < svc->nservers; i++) {
		active += svc->servers[i].active;
		inactive += svc->servers[i].inactive;
		persistent += svc->servers[i].persistent;
	}
	table_cell(t, row, COL_NAME, "%s", svc_text(&svc->id));
	table_cell(t, row, COL_SCHED, "%s", svc->scheduler);
	table_cell(t, row, COL_ACTIVE, "%llu", active);
	table_cell(t, row, COL_INACTIVE, "%llu", inactive);
	table_cell(t, row, COL_PERSISTENT, "%llu", persistent);
	table_cell(t, row, COL_RATE, "%llu",
		   (unsigned long long)svc->stats.cps);
	table_cell(t, row, COL_STATE, "%s", state);
	table_color(t, row, COL_STATE, !strcmp(state, "ok") ? CELL_GOOD
							    : CELL_BAD);
	table_cell(t, row, COL_OPTIONS, "%s", describe_options(svc));
	for (i = 0; i < svc->nservers; i++)
		server_row(t, row, &svc->servers[i]);
}

static int print_tree(const struct service_list *list)
{
	static const char *const with_options[] = { "options", NULL };
	bool options = false;
	struct table *t;
	size_t i;
	int rc;

	for (i = 0; i < list->n; i++)
		options |= describe_options(&list->v[i])[0] != '\0';
	rc = table_new(&t, columns, NCOLS, options ? with_options : NULL);
	if (rc)
		return rc;
	if (!list->n)
		note("no services");
	for (i = 0; i < list->n; i++)
		service_row(t, &list->v[i]);
	return table_print(t);
}

static int print_once(void *arg)
{
	struct service_list list = { 0 };
	int rc = filter_read(arg, &list);

	if (!rc)
		rc = opt.json ? print_json(&list) : print_tree(&list);
	service_list_free(&list);
	return rc;
}

static int view(struct args *a, bool server)
{
	struct filter f;
	int rc = filter_parse(a, &f, server);

	return rc ? rc : repeat_run(print_once, &f);
}

int view_services(struct args *a)
{
	return view(a, false);
}

int view_servers(struct args *a)
{
	return view(a, true);
}

// SPDX-License-Identifier: GPL-2.0
/* Reads the JSON that save and show print. An unknown key is an error: skipping
 * it might lose a setting.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <linux/ip_vs.h>

#include "args.h"
#include "check.h"
#include "config.h"
#include "err.h"
#include "model.h"
#include "optword.h"
#include "svcopt.h"
#include "then.h"

/* The keys of each kind of object. Live figures, which `-j show` prints, come
 * last; restore ignores them.
 */
static const char *const service_keys[] = {
	"id", "family", "protocol", "address", "prefix", "port", "last_port", "fwmark",
	"scheduler",
	"flags", "persistent", "mask", "pe", "ops", "options",
	POLICY_KEYS,
	"servers",
	"conns_per_second", "state", NULL
};

static const char *const server_keys[] = {
	"id", "address", "port", "forward", "tunnel", "weight", "max_conns",
	"min_conns", "drain",
	"active", "inactive", "persistent", "conns_per_second", "state",
	"ramp_percent", NULL
};

static const char *const tunnel_keys[] = {
	"type", "port", "csum", "remcsum", NULL
};

static int check_keys(json_t *o, const char *object, const char *what,
		      const char *const *known)
{
	const char *key;
	json_t *value;
	int i;

	if (!json_is_object(o))
		return fail(RC_USAGE, object, "%s must be an object", what);
	json_object_foreach(o, key, value) {
		for (i = 0; known[i] && strcmp(known[i], key); i++)
			;
		if (!known[i])
			return arg_unknown(object, "key", key, known);
	}
	return RC_OK;
}

static int get_number(json_t *o, const char *object, const char *key,
		      uint32_t max, uint32_t *out)
{
	json_t *v = json_object_get(o, key);
	json_int_t n = json_integer_value(v);

	if (!v)
		return RC_OK;
	if (!json_is_integer(v) || n < 0 || n > (json_int_t)max)
		return fail(RC_USAGE, object,
			    "\"%s\" must be a whole number from 0 to %u", key,
			    max);
	*out = (uint32_t)n;
	return RC_OK;
}

/* *out keeps its value if there is no such key. */
static int get_string(json_t *o, const char *object, const char *key,
		      const char **out)
{
	json_t *v = json_object_get(o, key);

	if (!v)
		return RC_OK;
	if (!json_is_string(v))
		return fail(RC_USAGE, object, "\"%s\" must be a string", key);
	*out = json_string_value(v);
	return RC_OK;
}

static int get_bool(json_t *o, const char *object, const char *key, bool *out)
{
	json_t *v = json_object_get(o, key);

	if (!v)
		return RC_OK;
	if (!json_is_boolean(v))
		return fail(RC_USAGE, object, "\"%s\" must be true or false",
			    key);
	*out = json_is_true(v);
	return RC_OK;
}

static int parse_word(const char *word, struct svc_id *id)
{
	struct args a = { .word = (char **)&word, .count = 1 };

	return parse_svc_id(&a, id);
}

static bool is_v6(const char *address)
{
	return !!strchr(address, ':');
}

/* A service is named by "id", by other keys, or by both if they agree. */
static int read_ident(json_t *o, const char *where, struct svc_id *id)
{
	const char *word = NULL, *proto = NULL, *addr = NULL, *family = NULL;
	uint32_t port = 0, mark = 0, len = 0, last = 0;
	struct svc_id parts;
	char buf[160] = "";
	int rc;

	rc = get_string(o, where, "id", &word);
	if (!rc)
		rc = get_string(o, where, "protocol", &proto);
	if (!rc)
		rc = get_string(o, where, "address", &addr);
	if (!rc)
		rc = get_string(o, where, "family", &family);
	if (!rc)
		rc = get_number(o, where, "port", 65535, &port);
	if (!rc)
		rc = get_number(o, where, "fwmark", UINT32_MAX, &mark);
	if (!rc)
		rc = get_number(o, where, "prefix", 128, &len);
	if (!rc)
		rc = get_number(o, where, "last_port", 65535, &last);
	if (rc)
		return rc;
	if (mark)
		snprintf(buf, sizeof(buf), "fwm%s:%u", family &&
			 !strcmp(family, "inet6") ? "6" : "", mark);
	else if (proto && addr && !len && !last)
		snprintf(buf, sizeof(buf), is_v6(addr) ? "%s:[%s]:%u"
			 : "%s:%s:%u", proto, addr, port);
	else if (proto && addr)
		snprintf(buf, sizeof(buf), is_v6(addr) ? "%s:[%s]/%u:%u-%u"
			 : "%s:%s/%u:%u-%u", proto, addr,
			 len ? len : is_v6(addr) ? 128 : 32, port, last ? last : port);
	if (!word && !buf[0])
		return fail(RC_USAGE, where,
			    "a service needs \"id\", or \"protocol\", \"address\" and \"port\", or \"fwmark\"");
	rc = parse_word(word ? word : buf, id);
	if (rc || !word || !buf[0])
		return rc;
	rc = parse_word(buf, &parts);
	if (!rc && !svc_id_equal(id, &parts))
		rc = fail(RC_USAGE, where, "\"id\" says %s, other keys say %s",
			  word, buf);
	return rc;
}

static int read_flags(json_t *o, struct service *svc, const char *object)
{
	static const struct { const char *name; uint32_t bit; } names[] = {
		{ "fallback", IP_VS_SVC_F_SCHED1 },
		{ "port", IP_VS_SVC_F_SCHED2 },
		{ "flag-1", IP_VS_SVC_F_SCHED1 },
		{ "flag-2", IP_VS_SVC_F_SCHED2 },
		{ "flag-3", IP_VS_SVC_F_SCHED3 },
	};
	json_t *flags = json_object_get(o, "flags"), *flag;
	size_t i, j, n = ARRAY_SIZE(names);

	if (flags && !json_is_array(flags))
		return fail(RC_USAGE, object, "\"flags\" must be a list");
	json_array_foreach(flags, i, flag) {
		const char *name = json_string_value(flag);

		for (j = 0; name && j < n && strcmp(name, names[j].name); j++)
			;
		if (!name || j == n)
			return fail(RC_USAGE, object, "unknown flag \"%s\"",
				    name ? name : "?");
		svc->flags |= names[j].bit;
	}
	return RC_OK;
}

static int read_mask(json_t *o, struct service *svc, const char *object)
{
	json_t *mask = json_object_get(o, "mask");
	char buf[16];

	if (!mask)
		return RC_OK;
	if (json_is_string(mask))
		return parse_mask(json_string_value(mask), &svc->id,
				  &svc->netmask);
	if (!json_is_integer(mask))
		return fail(RC_USAGE, object,
			    "\"mask\" must be a prefix length");
	snprintf(buf, sizeof(buf), "%lld",
		 (long long)json_integer_value(mask));
	return parse_mask(buf, &svc->id, &svc->netmask);
}

static int read_persistence(json_t *o, struct service *svc, const char *object)
{
	json_t *v = json_object_get(o, "persistent");
	int rc;

	if (!v || json_is_null(v))
		return RC_OK;
	rc = get_number(o, object, "persistent", DURATION_MAX, &svc->timeout);
	if (!rc && !svc->timeout)
		rc = fail(RC_USAGE, object,
			  "\"persistent\" must be seconds, or null");
	svc->flags |= IP_VS_SVC_F_PERSISTENT;
	return rc;
}

static int read_tunnel(json_t *o, struct server *srv, const char *object)
{
	static const char *const types[] = { "ipip", "gue", "gre", NULL };
	json_t *tun = json_object_get(o, "tunnel");
	bool csum = false, remcsum = false;
	const char *type = "ipip";
	uint32_t port = 0;
	int rc;

	if (!tun)
		return RC_OK;
	rc = check_keys(tun, object, "\"tunnel\"", tunnel_keys);
	if (!rc)
		rc = get_string(tun, object, "type", &type);
	if (!rc)
		rc = get_number(tun, object, "port", 65535, &port);
	if (!rc)
		rc = get_bool(tun, object, "csum", &csum);
	if (!rc)
		rc = get_bool(tun, object, "remcsum", &remcsum);
	if (rc)
		return rc;
	for (srv->tun_type = 0; types[srv->tun_type]; srv->tun_type++)
		if (!strcmp(type, types[srv->tun_type]))
			break;
	if (!types[srv->tun_type])
		return arg_unknown(object, "tunnel type", type, types);
	srv->tun_port = (uint16_t)port;
	srv->tun_flags = (csum ? IP_VS_TUNNEL_ENCAP_FLAG_CSUM : 0) |
			 (remcsum ? IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM : 0);
	return RC_OK;
}

static int read_forward(json_t *o, struct server *srv, const char *object)
{
	static const char *const known[] = { "nat", "dr", "tun", NULL };
	static const uint32_t methods[] = {
		IP_VS_CONN_F_MASQ, IP_VS_CONN_F_DROUTE, IP_VS_CONN_F_TUNNEL
	};
	const char *word = "nat";
	int i, rc = get_string(o, object, "forward", &word);

	for (i = 0; !rc && known[i]; i++) {
		if (strcmp(word, known[i]))
			continue;
		srv->forward = methods[i];
		return RC_OK;
	}
	return rc ? rc : arg_unknown(object, "forwarding method", word, known);
}

static int read_server_name(json_t *o, const struct svc_id *id,
			    const char *object, struct server *srv)
{
	const char *word = NULL, *addr = NULL;
	uint32_t port = svc_server_port(id);
	struct srv_id name;
	char buf[128];
	int rc;

	rc = get_string(o, object, "id", &word);
	if (!rc)
		rc = get_string(o, object, "address", &addr);
	if (!rc)
		rc = get_number(o, object, "port", 65535, &port);
	if (rc)
		return rc;
	if (!word && !addr)
		return fail(RC_USAGE, object,
			    "a server needs \"id\", or \"address\"");
	if (addr)
		snprintf(buf, sizeof(buf), is_v6(addr) ? "[%s]:%u" : "%s:%u",
			 addr, port);
	rc = parse_srv_word(addr ? buf : word, object, &name);
	if (!rc)
		server_defaults(srv, id, &name);
	if (!rc && addr && word &&
	    strcmp(word, ip_port_text(srv->af, &srv->addr, srv->port)))
		rc = fail(RC_USAGE, object, "\"id\" says %s, other keys say %s",
			  word, buf);
	return rc;
}

static int read_drain(json_t *o, struct server *srv, const char *object)
{
	static const char *const known[] = {
		"weight_before", "then", "seconds_left", NULL
	};
	json_t *drain = json_object_get(o, "drain");
	const char *word = NULL;
	int rc;

	if (!drain)
		return RC_OK;
	if (!json_is_object(drain))
		return fail(RC_USAGE, object, "\"drain\" must be an object");
	if (srv->weight)
		return fail(RC_USAGE, object,
			    "\"drain\" belongs to a server with weight 0");
	rc = check_keys(drain, object, "\"drain\"", known);
	if (!rc)
		rc = get_number(drain, object, "weight_before", INT32_MAX,
				&srv->drain.weight);
	if (!rc)
		rc = get_number(drain, object, "seconds_left", DURATION_MAX,
				&srv->drain.left);
	if (!rc)
		rc = get_string(drain, object, "then", &word);
	if (!rc && word)
		rc = parse_then(word, object, &srv->drain.then);
	srv->drain.known = !rc;
	srv->drain.timed = json_object_get(drain, "seconds_left");
	return rc;
}

static int read_server(json_t *o, struct service *svc)
{
	const char *object = svc_text(&svc->id);
	char where[128];
	struct server srv;
	int rc;

	rc = check_keys(o, object, "a server", server_keys);
	if (!rc)
		rc = read_server_name(o, &svc->id, object, &srv);
	if (rc)
		return rc;
	snprintf(where, sizeof(where), "%s: server %s", object,
		 ip_port_text(srv.af, &srv.addr, srv.port));
	rc = read_forward(o, &srv, where);
	if (!rc)
		rc = read_tunnel(o, &srv, where);
	if (!rc)
		rc = get_number(o, where, "weight", INT32_MAX, &srv.weight);
	if (!rc)
		rc = get_number(o, where, "max_conns", INT32_MAX,
				&srv.max_conns);
	if (!rc)
		rc = get_number(o, where, "min_conns", INT32_MAX,
				&srv.min_conns);
	if (!rc)
		rc = read_drain(o, &srv, where);
	if (!rc)
		rc = server_check(svc, &srv);
	if (!rc && server_find(svc, srv.af, &srv.addr, srv.port))
		rc = fail(RC_USAGE, where, "the server is named twice");
	if (!rc)
		*server_append(svc) = srv;
	return rc;
}

static int read_options(json_t *o, struct service *svc, const char *object)
{
	json_t *options = json_object_get(o, "options"), *value;
	const char *name;
	char text[24];
	int rc;

	if (options && !json_is_object(options))
		return fail(RC_USAGE, object, "\"options\" must be an object");
	json_object_foreach(options, name, value) {
		if (!json_is_integer(value) &&
		    !(json_is_string(value) && option_has_words(name)))
			return fail(RC_USAGE, object,
				    "option \"%s\" must be a whole number",
				    name);
		snprintf(text, sizeof(text), "%lld",
			 (long long)json_integer_value(value));
		rc = option_named(svc, name, json_is_string(value) ?
				  json_string_value(value) : text);
		if (rc)
			return rc;
	}
	return RC_OK;
}

static int read_settings(json_t *o, struct service *svc, const char *object)
{
	const char *scheduler = NULL, *pe = NULL;
	bool ops = false;
	int rc;

	rc = get_string(o, object, "scheduler", &scheduler);
	if (!rc && scheduler)
		rc = check_scheduler_name(scheduler, object);
	if (!rc)
		rc = get_string(o, object, "pe", &pe);
	if (!rc && pe && pe[0])
		rc = take_pe(pe, object, svc->pe, sizeof(svc->pe));
	if (!rc)
		rc = get_bool(o, object, "ops", &ops);
	if (!rc)
		rc = read_flags(o, svc, object);
	if (!rc)
		rc = read_persistence(o, svc, object);
	if (!rc)
		rc = read_mask(o, svc, object);
	if (!rc)
		rc = read_options(o, svc, object);
	if (!rc)
		rc = policy_from_json(o, object, &svc->policy);
	if (rc)
		return rc;
	if (scheduler)
		snprintf(svc->scheduler, sizeof(svc->scheduler), "%s",
			 scheduler);
	if (ops)
		svc->flags |= IP_VS_SVC_F_ONEPACKET;
	return service_check(svc);
}

static int read_service(json_t *o, const char *where,
			struct service_list *list)
{
	json_t *servers = json_object_get(o, "servers"), *server;
	struct service svc;
	struct svc_id id;
	size_t i;
	int rc;

	rc = check_keys(o, where, "a service", service_keys);
	if (!rc)
		rc = read_ident(o, where, &id);
	if (!rc && service_find(list, &id))
		rc = fail(RC_USAGE, where, "%s is named twice", svc_text(&id));
	if (rc)
		return rc;
	service_defaults(&svc, &id);
	rc = read_settings(o, &svc, svc_text(&id));
	if (!rc && servers && !json_is_array(servers))
		rc = fail(RC_USAGE, where, "\"servers\" must be a list");
	if (!rc)
		json_array_foreach(servers, i, server) {
			rc = read_server(server, &svc);
			if (rc)
				break;
		}
	if (rc)
		service_free(&svc);
	else
		*service_append(list) = svc;
	return rc;
}

/* Messages about a service begin with the file's name. */
static int read_document(const char *file, json_t *doc,
			 struct service_list *list)
{
	static const char *const keys[] = { "ipvsctl", "services", NULL };
	json_t *services = json_object_get(doc, "services"), *one;
	json_t *head = json_object_get(doc, "ipvsctl");
	char where[512];
	size_t i;
	int rc;

	rc = check_keys(doc, file, "the document", keys);
	if (!rc && head &&
	    json_integer_value(json_object_get(head, "schema")) != 1)
		rc = fail(RC_USAGE, file, "this ipvsctl reads schema 1 only");
	if (!rc && !json_is_array(services))
		rc = fail(RC_USAGE, file, "\"services\" must be a list");
	if (rc)
		return rc;
	json_array_foreach(services, i, one) {
		snprintf(where, sizeof(where), "services[%zu]", i);
		rc = read_service(one, where, list);
		if (rc) {
			fail_where(file, 0);
			return rc;
		}
	}
	return RC_OK;
}

int config_read(const char *file, const char *text, size_t len,
		struct service_list *list)
{
	json_error_t err;
	json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &err);
	int rc;

	if (!doc) {
		rc = fail(RC_USAGE, NULL, "not JSON: %s", err.text);
		fail_where(file, err.line > 0 ? (unsigned int)err.line : 1);
		return rc;
	}
	rc = read_document(file, doc, list);
	json_decref(doc);
	return rc;
}

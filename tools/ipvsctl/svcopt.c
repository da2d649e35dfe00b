// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "err.h"
#include "model.h"
#include "optword.h"
#include "svcopt.h"

/* The kernel requests modules by these names, so only characters of module
 * names are allowed.
 */
static bool is_module_word(const char *word)
{
	return word[0] && strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_-")
		== strlen(word);
}

int check_scheduler_name(const char *word, const char *object)
{
	int rc;

	if (is_module_word(word) && strlen(word) < 16 && strcmp(word, "none"))
		return RC_OK;
	rc = fail(RC_USAGE, object, "bad scheduler name \"%s\"", word);
	hint("try: ipvsctl scheduler list");
	return rc;
}

int take_pe(const char *word, const char *object, char *pe, size_t size)
{
	if (!is_module_word(word) || strlen(word) >= size)
		return fail(RC_USAGE, object,
			    "bad persistence engine \"%s\": write its name, or none",
			    word);
	snprintf(pe, size, "%s", strcmp(word, "none") ? word : "");
	return RC_OK;
}

static int parse_scheduler(struct args *a, const char *object,
			   struct svc_opts *o)
{
	const char *word;
	int rc = arg_value(a, object, "scheduler", &word);

	if (!rc)
		rc = check_scheduler_name(word, object);
	if (!rc)
		snprintf(o->scheduler, sizeof(o->scheduler), "%s", word);
	o->named |= SVC_SCHEDULER;
	return rc;
}

/* An option given twice is a mistake: one value would be lost. */
static int given_twice(const char *object, const char *word)
{
	return fail(RC_USAGE, object, "\"%s\" is given twice", word);
}

int option_named(struct service *svc, const char *name, const char *value)
{
	const char *object = svc_text(&svc->id);
	struct svc_option o = { 0 };
	int rc;

	if (!is_module_word(name) || strlen(name) > 15) {
		rc = fail(RC_USAGE, object, "bad option name \"%s\"", name);
		hint("try: ipvsctl scheduler list");
		return rc;
	}
	snprintf(o.name, sizeof(o.name), "%s", name);
	rc = option_word_parse(&o, value, object);
	if (rc)
		return rc;
	if (service_option(svc, name))
		return given_twice(object, name);
	if (!service_option_put(svc, &o))
		return fail(RC_USAGE, object, "more than %d options",
			    SERVICE_OPTIONS_MAX);
	return RC_OK;
}

static int parse_option(struct args *a, const struct svc_id *id,
			struct svc_opts *o)
{
	const char *object = svc_text(id), *name, *value;
	struct service svc = { .id = *id, .options = o->options,
			       .noptions = o->noptions };
	int rc = arg_value(a, object, "option", &name);

	if (!rc)
		rc = arg_value(a, object, name, &value);
	if (rc)
		return rc;
	rc = option_named(&svc, name, value);
	o->noptions = svc.noptions;
	o->named |= SVC_OPTION;
	return rc;
}

static int parse_pe(struct args *a, const char *object, struct svc_opts *o)
{
	const char *word;
	int rc = arg_value(a, object, "pe", &word);

	if (!rc)
		rc = take_pe(word, object, o->pe, sizeof(o->pe));
	if (!rc)
		o->named |= SVC_PE;
	return rc;
}

static int parse_flags(struct args *a, const char *object, struct svc_opts *o)
{
	static const struct { const char *name; uint32_t bit; } flags[] = {
		{ "fallback", IP_VS_SVC_F_SCHED1 },
		{ "port", IP_VS_SVC_F_SCHED2 },
		{ "flag-1", IP_VS_SVC_F_SCHED1 },
		{ "flag-2", IP_VS_SVC_F_SCHED2 },
		{ "flag-3", IP_VS_SVC_F_SCHED3 },
		{ "none", 0 },
	};
	const char *known[7] = { NULL };
	char buf[128], *word, *save;
	const char *list;
	size_t i, n = ARRAY_SIZE(flags);
	int rc = arg_value(a, object, "flags", &list);

	if (rc)
		return rc;
	for (i = 0; i < n; i++)
		known[i] = flags[i].name;
	snprintf(buf, sizeof(buf), "%s", list);
	o->named |= SVC_FLAGS;
	o->sched_flags = 0;
	for (word = strtok_r(buf, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		for (i = 0; i < n && strcmp(word, flags[i].name); i++)
			;
		if (i == n)
			return arg_unknown(object, "flag", word, known);
		o->sched_flags |= flags[i].bit;
	}
	return RC_OK;
}

int parse_mask(const char *word, const struct svc_id *id, uint32_t *netmask)
{
	const char *object = svc_text(id);
	uint32_t len, max = id->af == AF_INET6 ? 128 : 32;
	struct in_addr dotted;

	if (word[0] == '/')
		word++;
	if (id->af == AF_INET && inet_pton(AF_INET, word, &dotted) == 1) {
		*netmask = dotted.s_addr;
		if (netmask_len(id->af, *netmask) >= 0)
			return RC_OK;
		return fail(RC_USAGE, object,
			    "bad mask \"%s\": its 1 bits must be contiguous",
			    word);
	}
	if (!parse_u32(word, id->af == AF_INET6, max, &len))
		return fail(RC_USAGE, object,
			    "bad mask \"%s\": write a prefix length from %d to %u%s",
			    word, id->af == AF_INET6, max,
			    id->af == AF_INET ? ", or a mask such as 255.255.255.0" : "");
	*netmask = netmask_from_len(id->af, len);
	return RC_OK;
}

static int parse_persistent(struct args *a, struct svc_opts *o)
{
	const char *next = arg_peek(a);

	o->named |= SVC_PERSISTENT;
	o->persistent = true;
	o->timeout = PERSISTENT_DEFAULT;
	if (next && ((next[0] >= '0' && next[0] <= '9') || next[0] == '-'))
		return arg_duration(a, NULL, "persistent", DURATION_MAX,
				    &o->timeout);
	return RC_OK;
}

static int svc_opt(struct args *a, const struct svc_id *id, const char *word,
		   struct svc_opts *o)
{
	static const char *const known[] = {
		"scheduler", "flags", "persistent", "no-persistent", "mask",
		"pe", "ops", "no-ops", "option", POLICY_WORDS, "server", NULL
	};
	/* Without its word before it, as people write it. */
	static const char *const schedulers[] = {
		"rr", "wrr", "lc", "wlc", "lblc", "lblcr", "dh", "sh", "sed",
		"nq", "fo", "ovf", "mh", "twos", "ewma", "bpf"
	};
	const char *object = svc_text(id), *value;
	size_t i;
	int rc;

	if (!strcmp(word, "scheduler") || !strcmp(word, "sched"))
		return parse_scheduler(a, object, o);
	if (!strcmp(word, "flags"))
		return parse_flags(a, object, o);
	if (!strcmp(word, "persistent"))
		return parse_persistent(a, o);
	if (!strcmp(word, "no-persistent")) {
		o->named |= SVC_PERSISTENT;
		o->persistent = false;
		return RC_OK;
	}
	if (!strcmp(word, "mask")) {
		o->named |= SVC_MASK;
		rc = arg_value(a, object, word, &value);
		return rc ? rc : parse_mask(value, id, &o->netmask);
	}
	if (!strcmp(word, "pe"))
		return parse_pe(a, object, o);
	if (!strcmp(word, "option"))
		return parse_option(a, id, o);
	if (!strcmp(word, "ops") || !strcmp(word, "no-ops")) {
		o->named |= SVC_OPS;
		o->ops = word[0] == 'o';
		return RC_OK;
	}
	if (policy_is_word(word)) {
		o->named |= SVC_POLICY;
		return policy_parse(a, object, word, &o->policy);
	}
	rc = arg_unknown(object, "service option", word, known);
	for (i = 0; i < ARRAY_SIZE(schedulers); i++)
		if (!strcmp(word, schedulers[i]))
			hint("did you mean: scheduler %s", word);
	return rc;
}

int svc_opts_parse(struct args *a, const struct svc_id *id, struct svc_opts *o)
{
	const char *word;
	int rc = RC_OK;

	memset(o, 0, sizeof(*o));
	while (!rc && (word = arg_peek(a)) && strcmp(word, "server") &&
	       strcmp(word, "rs")) {
		unsigned int before = o->named;

		o->named = 0;
		rc = svc_opt(a, id, arg_next(a), o);
		if (!rc && (o->named & before &
			    ~(unsigned int)(SVC_OPTION | SVC_POLICY)))
			rc = given_twice(svc_text(id), word);
		o->named |= before;
	}
	return rc;
}

static int parse_tun_type(struct args *a, const char *object,
			  struct srv_opts *o)
{
	static const char *const types[] = { "ipip", "gue", "gre", NULL };
	const char *word;
	int i, rc = arg_value(a, object, "type", &word);

	if (rc)
		return rc;
	for (i = 0; types[i]; i++) {
		if (strcmp(word, types[i]))
			continue;
		o->tun_type = (uint8_t)i;
		o->named |= SRV_TUN_TYPE;
		return RC_OK;
	}
	return arg_unknown(object, "tunnel type", word, types);
}

static int tun_opt(struct args *a, const char *object, const char *word,
		   struct srv_opts *o)
{
	static const char *const known[] = {
		"nat", "dr", "tun", "weight", "max-conns", "min-conns", "type",
		"port", "csum", "no-csum", "remcsum", NULL
	};
	uint32_t n;
	int rc;

	if (!strcmp(word, "type"))
		return parse_tun_type(a, object, o);
	if (!strcmp(word, "port")) {
		rc = arg_u32(a, object, word, RANGE(1, 65535), &n);
		o->tun_port = (uint16_t)n;
		o->named |= SRV_TUN_PORT;
		return rc;
	}
	if (!strcmp(word, "csum")) {
		o->tun_flags |= IP_VS_TUNNEL_ENCAP_FLAG_CSUM;
		o->tun_flags_named |= IP_VS_TUNNEL_ENCAP_FLAG_CSUM |
				      IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM;
	} else if (!strcmp(word, "no-csum")) {
		o->tun_flags_named |= IP_VS_TUNNEL_ENCAP_FLAG_CSUM |
				      IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM;
	} else if (!strcmp(word, "remcsum")) {
		o->tun_flags |= IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM;
		o->tun_flags_named |= IP_VS_TUNNEL_ENCAP_FLAG_CSUM |
				      IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM;
	} else if (policy_is_word(word)) {
		return fail(RC_USAGE, object,
			    "\"%s\" is an option of the service: write it before \"server\", or use \"service change\"",
			    word);
	} else {
		return arg_unknown(object, "server option", word, known);
	}
	return RC_OK;
}

static int srv_opt(struct args *a, const char *object, const char *word,
		   struct srv_opts *o)
{
	static const struct { const char *name; uint32_t forward; } how[] = {
		{ "nat", IP_VS_CONN_F_MASQ }, { "dr", IP_VS_CONN_F_DROUTE },
		{ "tun", IP_VS_CONN_F_TUNNEL },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(how); i++) {
		if (strcmp(word, how[i].name))
			continue;
		o->forward = how[i].forward;
		o->named |= SRV_FORWARD;
		return RC_OK;
	}
	if (!strcmp(word, "weight")) {
		o->named |= SRV_WEIGHT;
		return arg_u32(a, object, word, RANGE(0, INT32_MAX), &o->weight);
	}
	if (!strcmp(word, "max-conns")) {
		o->named |= SRV_MAX;
		return arg_u32(a, object, word, RANGE(0, INT32_MAX),
			       &o->max_conns);
	}
	if (!strcmp(word, "min-conns")) {
		o->named |= SRV_MIN;
		return arg_u32(a, object, word, RANGE(0, INT32_MAX),
			       &o->min_conns);
	}
	return tun_opt(a, object, word, o);
}

int srv_opts_parse(struct args *a, const struct svc_id *id,
		   struct srv_opts *o, bool more)
{
	const char *word, *object = svc_text(id);
	int rc = RC_OK;

	memset(o, 0, sizeof(*o));
	while (!rc && (word = arg_peek(a)) &&
	       !(more && (!strcmp(word, "server") || !strcmp(word, "rs")))) {
		unsigned int before = o->named;

		o->named = 0;
		rc = srv_opt(a, object, arg_next(a), o);
		if (rc || !(o->named & before))
			;
		else if (o->named & SRV_FORWARD)
			rc = fail(RC_USAGE, object,
				  "two forwarding methods for one server: choose nat, dr or tun");
		else
			rc = given_twice(object, word);
		o->named |= before;
	}
	return rc;
}

void service_defaults(struct service *svc, const struct svc_id *id)
{
	memset(svc, 0, sizeof(*svc));
	svc->id = *id;
	strcpy(svc->scheduler, "wlc");
	svc->netmask = netmask_full(id->af);
}

void server_defaults(struct server *srv, const struct svc_id *id,
		     const struct srv_id *name)
{
	memset(srv, 0, sizeof(*srv));
	srv->af = name->af;
	srv->addr = name->addr;
	srv->port = name->has_port ? name->port : svc_server_port(id);
	srv->forward = IP_VS_CONN_F_MASQ;
	srv->weight = 1;
}

static void set_bits(uint32_t *flags, uint32_t mask, uint32_t bits)
{
	*flags = (*flags & ~mask) | (bits & mask);
}

/* Another scheduler starts with its own defaults. */
void svc_opts_apply(struct service *svc, const struct svc_opts *o)
{
	size_t i;

	if (o->named & SVC_SCHEDULER) {
		if (strcmp(svc->scheduler, o->scheduler))
			svc->noptions = 0;
		strcpy(svc->scheduler, o->scheduler);
	}
	for (i = 0; i < o->noptions; i++)
		service_option_put(svc, &o->options[i]);
	policy_apply(&svc->policy, &o->policy);
	if (o->named & SVC_PE)
		strcpy(svc->pe, o->pe);
	if (o->named & SVC_FLAGS)
		set_bits(&svc->flags, SCHED_FLAGS, o->sched_flags);
	if (o->named & SVC_OPS)
		set_bits(&svc->flags, IP_VS_SVC_F_ONEPACKET, o->ops ? ~0u : 0);
	if (o->named & SVC_PERSISTENT) {
		set_bits(&svc->flags, IP_VS_SVC_F_PERSISTENT,
			 o->persistent ? ~0u : 0);
		svc->timeout = o->persistent ? o->timeout : 0;
		if (!o->persistent)
			svc->netmask = netmask_full(svc->id.af);
	}
	if (o->named & SVC_MASK)
		svc->netmask = o->netmask;
}

/* Another tunnel type starts from its own defaults. */
void srv_opts_apply(struct server *srv, const struct srv_opts *o)
{
	if (o->named & SRV_FORWARD)
		srv->forward = o->forward;
	if (o->named & SRV_WEIGHT)
		srv->weight = o->weight;
	if (o->named & SRV_MAX)
		srv->max_conns = o->max_conns;
	if (o->named & SRV_MIN)
		srv->min_conns = o->min_conns;
	if ((o->named & SRV_FORWARD && o->forward != IP_VS_CONN_F_TUNNEL) ||
	    (o->named & SRV_TUN_TYPE && o->tun_type != srv->tun_type)) {
		srv->tun_type = IP_VS_CONN_F_TUNNEL_TYPE_IPIP;
		srv->tun_port = 0;
		srv->tun_flags = 0;
	}
	if (o->named & SRV_TUN_TYPE)
		srv->tun_type = o->tun_type;
	if (o->named & SRV_TUN_PORT)
		srv->tun_port = o->tun_port;
	srv->tun_flags &= (uint16_t)~o->tun_flags_named;
	srv->tun_flags |= o->tun_flags;
}

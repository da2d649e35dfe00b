// SPDX-License-Identifier: GPL-2.0
/* Reads ipvsadm rules: one line for each service (-A) or server (-a), with
 * ipvsadm's own defaults for options that a line omits.
 */
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "check.h"
#include "err.h"
#include "model.h"
#include "rules.h"
#include "svcopt.h"

/* The options of one line. They may come in any order, so nothing is checked
 * against the service before the end of the line.
 */
struct rule {
	char verb;			/* A or a */
	const char *proto, *vip;	/* -t, -u, --sctp-service */
	const char *mark;		/* -f */
	bool six;
	const char *scheduler, *pe, *flags, *mask, *server;
	const char *timeout;
	bool persistent, ops;
	uint32_t forward, weight, max_conns, min_conns, tun_type, tun_port;
	uint16_t tun_flags;
};

/* What ipvsadm sends for -p without a time; its manual says 300. */
enum { IPVSADM_PERSISTENT = 360 };

enum option_kind {
	O_ADD, O_ADDSRV, O_TCP, O_UDP, O_SCTP, O_MARK, O_SIX, O_SCHED,
	O_PERSISTENT, O_MASK, O_PE, O_FLAGS, O_OPS, O_SERVER, O_DR, O_TUN,
	O_NAT, O_WEIGHT, O_MAX, O_MIN, O_TUN_TYPE, O_TUN_PORT, O_NOCSUM,
	O_CSUM, O_REMCSUM,
};

static const struct {
	const char *brief, *name;
	enum option_kind kind;
} options[] = {
	{ "-A", "--add-service", O_ADD },
	{ "-a", "--add-server", O_ADDSRV },
	{ "-t", "--tcp-service", O_TCP },
	{ "-u", "--udp-service", O_UDP },
	{ NULL, "--sctp-service", O_SCTP },
	{ "-f", "--fwmark-service", O_MARK },
	{ "-6", "--ipv6", O_SIX },
	{ "-s", "--scheduler", O_SCHED },
	{ "-p", "--persistent", O_PERSISTENT },
	{ "-M", "--netmask", O_MASK },
	{ NULL, "--pe", O_PE },
	{ "-b", "--sched-flags", O_FLAGS },
	{ "-o", "--ops", O_OPS },
	{ "-r", "--real-server", O_SERVER },
	{ "-g", "--gatewaying", O_DR },
	{ "-i", "--ipip", O_TUN },
	{ "-m", "--masquerading", O_NAT },
	{ "-w", "--weight", O_WEIGHT },
	{ "-x", "--u-threshold", O_MAX },
	{ "-y", "--l-threshold", O_MIN },
	{ NULL, "--tun-type", O_TUN_TYPE },
	{ NULL, "--tun-port", O_TUN_PORT },
	{ NULL, "--tun-nocsum", O_NOCSUM },
	{ NULL, "--tun-csum", O_CSUM },
	{ NULL, "--tun-remcsum", O_REMCSUM },
};

static int find_option(const char *word)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(word, options[i].name) ||
		    (options[i].brief && !strcmp(word, options[i].brief)))
			return (int)options[i].kind;
	return -1;
}

/* Options that take no value. */
static bool take_switch(struct rule *r, int kind)
{
	switch (kind) {
	case O_ADD:
		r->verb = 'A';
		break;
	case O_ADDSRV:
		r->verb = 'a';
		break;
	case O_SIX:
		r->six = true;
		break;
	case O_OPS:
		r->ops = true;
		break;
	case O_DR:
		r->forward = IP_VS_CONN_F_DROUTE;
		break;
	case O_TUN:
		r->forward = IP_VS_CONN_F_TUNNEL;
		break;
	case O_NAT:
		r->forward = IP_VS_CONN_F_MASQ;
		break;
	case O_NOCSUM:
		r->tun_flags = 0;
		break;
	case O_CSUM:
		r->tun_flags = IP_VS_TUNNEL_ENCAP_FLAG_CSUM;
		break;
	case O_REMCSUM:
		r->tun_flags = IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM;
		break;
	default:
		return false;
	}
	return true;
}

static int take_tun_type(struct rule *r, const char *value)
{
	static const char *const types[] = { "ipip", "gue", "gre", NULL };

	for (r->tun_type = 0; types[r->tun_type]; r->tun_type++)
		if (!strcmp(value, types[r->tun_type]))
			return RC_OK;
	return arg_unknown(NULL, "tunnel type", value, types);
}

static int take_number(const char *name, const char *value, uint32_t max,
		       uint32_t *out)
{
	if (parse_u32(value, 0, max, out))
		return RC_OK;
	return fail(RC_USAGE, NULL,
		    "bad %s \"%s\": write a whole number from 0 to %u", name,
		    value, max);
}

static int take_value(struct rule *r, int kind, const char *word,
		      const char *value)
{
	static const char *const protos[] = { "tcp", "udp", "sctp" };

	switch (kind) {
	case O_TCP:
	case O_UDP:
	case O_SCTP:
		r->proto = protos[kind - O_TCP];
		r->vip = value;
		break;
	case O_MARK:
		r->mark = value;
		break;
	case O_SCHED:
		r->scheduler = value;
		break;
	case O_MASK:
		r->mask = value;
		break;
	case O_PE:
		r->pe = value;
		break;
	case O_FLAGS:
		r->flags = value;
		break;
	case O_SERVER:
		r->server = value;
		break;
	case O_WEIGHT:
		return take_number(word, value, INT32_MAX, &r->weight);
	case O_MAX:
		return take_number(word, value, INT32_MAX, &r->max_conns);
	case O_MIN:
		return take_number(word, value, INT32_MAX, &r->min_conns);
	case O_TUN_TYPE:
		return take_tun_type(r, value);
	case O_TUN_PORT:
		return take_number(word, value, 65535, &r->tun_port);
	}
	return RC_OK;
}

static int read_rule(struct args *a, struct rule *r)
{
	const char *word, *value;
	int kind, rc = RC_OK;

	*r = (struct rule){ .forward = IP_VS_CONN_F_DROUTE, .weight = 1 };
	while (!rc && (word = arg_next(a))) {
		kind = find_option(word);
		if (kind < 0)
			return fail(RC_USAGE, NULL,
				    "\"%s\" is not an ipvsadm option that can be restored",
				    word);
		if (take_switch(r, kind))
			continue;
		if (kind == O_PERSISTENT) {
			r->persistent = true;
			if (arg_peek(a) && arg_peek(a)[0] != '-')
				r->timeout = arg_next(a);
			continue;
		}
		rc = arg_value(a, NULL, word, &value);
		if (!rc)
			rc = take_value(r, kind, word, value);
	}
	if (!rc && !r->verb)
		rc = fail(RC_USAGE, NULL, "the line has neither -A nor -a");
	return rc;
}

static int rule_ident(const struct rule *r, struct svc_id *id)
{
	char buf[128], *word = buf;
	struct args a = { .word = &word, .count = 1 };
	int n, rc;

	if (!r->vip == !r->mark)
		return fail(RC_USAGE, NULL, "the line names %s",
			    r->vip ? "two services" : "no service");
	if (r->mark)
		n = snprintf(buf, sizeof(buf), "fwm%s:%s", r->six ? "6" : "",
			     r->mark);
	else
		n = snprintf(buf, sizeof(buf), "%s:%s", r->proto, r->vip);
	if (n >= (int)sizeof(buf))
		return fail(RC_USAGE, NULL, "the service's name is too long");
	rc = parse_svc_id(&a, id);
	if (rc)
		hint("names are not looked up; ipvsadm -Sn writes numbers");
	return rc;
}

/* ipvsadm writes the flags with the scheduler's name: sh-port, mh-port. */
static int rule_flags(const struct rule *r, struct service *svc)
{
	static const struct { const char *name; uint32_t bit; } names[] = {
		{ "sh-fallback", IP_VS_SVC_F_SCHED1 },
		{ "mh-fallback", IP_VS_SVC_F_SCHED1 },
		{ "flag-1", IP_VS_SVC_F_SCHED1 },
		{ "sh-port", IP_VS_SVC_F_SCHED2 },
		{ "mh-port", IP_VS_SVC_F_SCHED2 },
		{ "flag-2", IP_VS_SVC_F_SCHED2 },
		{ "flag-3", IP_VS_SVC_F_SCHED3 },
	};
	size_t i, n = ARRAY_SIZE(names);
	char buf[128], *word, *save;

	snprintf(buf, sizeof(buf), "%s", r->flags ? r->flags : "");
	for (word = strtok_r(buf, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		for (i = 0; i < n && strcmp(word, names[i].name); i++)
			;
		if (i == n)
			return fail(RC_USAGE, svc_text(&svc->id),
				    "unknown flag \"%s\": write flag-1, flag-2, flag-3, or a name such as sh-port",
				    word);
		svc->flags |= names[i].bit;
	}
	return RC_OK;
}

static int rule_persistence(const struct rule *r, struct service *svc)
{
	const char *object = svc_text(&svc->id);

	if (!r->persistent)
		return RC_OK;
	svc->flags |= IP_VS_SVC_F_PERSISTENT;
	svc->timeout = IPVSADM_PERSISTENT;
	if (r->timeout && !parse_u32(r->timeout, 1, DURATION_MAX, &svc->timeout))
		return fail(RC_USAGE, object,
			    "bad -p \"%s\": write seconds, from 1 to %u",
			    r->timeout, DURATION_MAX);
	return RC_OK;
}

static int add_service(const struct rule *r, const struct svc_id *id,
		       struct service_list *list, unsigned int line)
{
	const char *object = svc_text(id);
	struct service svc;
	int rc;

	if (service_find(list, id))
		return fail(RC_USAGE, object, "the service is named twice");
	service_defaults(&svc, id);
	svc.line = line;
	rc = r->scheduler ? check_scheduler_name(r->scheduler, object) : RC_OK;
	if (!rc && r->pe)
		rc = take_pe(r->pe, object, svc.pe, sizeof(svc.pe));
	if (rc)
		return rc;
	if (r->scheduler)
		snprintf(svc.scheduler, sizeof(svc.scheduler), "%s",
			 r->scheduler);
	if (r->ops)
		svc.flags |= IP_VS_SVC_F_ONEPACKET;
	rc = rule_flags(r, &svc);
	if (!rc)
		rc = rule_persistence(r, &svc);
	if (!rc && r->mask)
		rc = parse_mask(r->mask, id, &svc.netmask);
	if (!rc)
		rc = service_check(&svc);
	if (!rc)
		*service_append(list) = svc;
	return rc;
}

static int add_server(const struct rule *r, const struct svc_id *id,
		      struct service_list *list, unsigned int line)
{
	struct service *svc = service_find(list, id);
	const char *object = svc_text(id);
	struct srv_id name;
	struct server srv;
	int rc;

	if (!svc)
		return fail(RC_USAGE, object,
			    "no line before this one adds the service");
	if (!r->server)
		return fail(RC_USAGE, object, "the line names no server (-r)");
	rc = parse_srv_word(r->server, object, &name);
	if (rc)
		return rc;
	server_defaults(&srv, id, &name);
	srv.line = line;
	srv.forward = r->forward;
	srv.weight = r->weight;
	srv.max_conns = r->max_conns;
	srv.min_conns = r->min_conns;
	srv.tun_type = (uint8_t)r->tun_type;
	srv.tun_port = (uint16_t)r->tun_port;
	srv.tun_flags = r->tun_flags;
	rc = server_check(svc, &srv);
	if (!rc && server_find(svc, srv.af, &srv.addr, srv.port))
		rc = fail(RC_USAGE, object, "server %s is named twice",
			  r->server);
	if (!rc)
		*server_append(svc) = srv;
	return rc;
}

static int own_options(struct args *a, struct service *svc)
{
	const char *object = svc_text(&svc->id), *name, *value;
	int rc = RC_OK;

	if (!arg_peek(a))
		return arg_value(a, object, "option", &name);
	while (!rc && (name = arg_next(a))) {
		rc = arg_value(a, object, name, &value);
		if (!rc)
			rc = option_named(svc, name, value);
	}
	return rc;
}

static int own_policy(struct args *a, struct service *svc)
{
	static const char *const known[] = { POLICY_WORDS, NULL };
	const char *object = svc_text(&svc->id), *word;
	struct policy_opts o = { .named = 0 };
	int rc = RC_OK;

	if (!arg_peek(a))
		return arg_value(a, object, "service", &word);
	while (!rc && (word = arg_next(a)))
		rc = policy_is_word(word)
			? policy_parse(a, object, word, &o)
			: arg_unknown(object, "service option", word, known);
	policy_apply(&svc->policy, &o);
	return rc;
}

/* The rest of a line that begins with #ipvsctl. It only looks like a comment:
 * unknown words are errors.
 */
static int own_line(struct args *a, struct service_list *list)
{
	static const char *const known[] = { "option", "service", NULL };
	const char *word = arg_next(a);
	struct service *svc;
	struct svc_id id;
	int rc;

	if (!word || (strcmp(word, "option") && strcmp(word, "service")))
		return arg_unknown(NULL, "word after #ipvsctl",
				   word ? word : "", known);
	rc = parse_svc_id(a, &id);
	if (rc)
		return rc;
	svc = service_find(list, &id);
	if (!svc)
		return fail(RC_USAGE, svc_text(&id),
			    "no line before this one adds the service");
	return strcmp(word, "option") ? own_policy(a, svc)
				       : own_options(a, svc);
}

static int read_line(char *text, struct service_list *list, unsigned int line)
{
	enum { WORDS_MAX = 64 };
	char *word[WORDS_MAX], *save, *w;
	struct args a = { .word = word };
	struct svc_id id;
	struct rule r;
	int rc;

	for (w = strtok_r(text, " \t\r", &save); w;
	     w = strtok_r(NULL, " \t\r", &save)) {
		if (w[0] == '#' && (a.count || strcmp(w, "#ipvsctl")))
			break;
		if (a.count == WORDS_MAX)
			return fail(RC_USAGE, NULL, "the line is too long");
		word[a.count++] = w;
	}
	if (!a.count)
		return RC_OK;
	if (word[0][0] == '#') {
		arg_next(&a);
		return own_line(&a, list);
	}
	rc = read_rule(&a, &r);
	if (!rc)
		rc = rule_ident(&r, &id);
	if (rc)
		return rc;
	return r.verb == 'A' ? add_service(&r, &id, list, line)
			     : add_server(&r, &id, list, line);
}

bool rules_are(const char *text)
{
	for (;;) {
		text += strspn(text, " \t\r\n");
		if (*text != '#')
			break;
		text += strcspn(text, "\n");
	}
	/* A list of YAML has a blank after its dash, and a document begins with three. */
	return text[0] == '-' &&
	       isalpha((unsigned char)text[text[1] == '-' ? 2 : 1]);
}

int rules_read(const char *file, char *text, struct service_list *list)
{
	unsigned int line = 0;
	char *next = text;
	int rc = RC_OK;

	while (!rc && next) {
		char *here = strsep(&next, "\n");

		rc = read_line(here, list, ++line);
	}
	if (rc)
		fail_where(file, line);
	return rc;
}

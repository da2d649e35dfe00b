// SPDX-License-Identifier: GPL-2.0
#include <string.h>
#include <strings.h>

#include "args.h"
#include "conn_filter.h"
#include "err.h"
#include "proc.h"

const char *const conn_states[] = {
	"ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT", "TIME_WAIT",
	"CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN", "SYNACK", "UDP", "NONE",
	"ASSURED", "INIT1", "INIT", "C-SENT", "C-REPLIED", "C-WAIT", "COOKIE",
	"C-ECHOED", "S-SENT", "S-RECEIVED", "S-ACK-SENT", "REJECTED", "CLOSED",
	NULL
};

static int parse_state(struct args *a, struct conn_filter *f)
{
	const char *word;
	int i, rc = arg_value(a, NULL, "state", &word);

	for (i = 0; !rc && conn_states[i]; i++) {
		if (strcasecmp(word, conn_states[i]))
			continue;
		f->state = conn_states[i];
		return RC_OK;
	}
	return rc ? rc : arg_unknown(NULL, "state", word, conn_states);
}

static int parse_service(struct args *a, struct conn_filter *f)
{
	f->by_service = true;
	return parse_svc_id(a, &f->service);
}

int conn_filter_word(struct args *a, struct conn_filter *f)
{
	static const char *const known[] = {
		"service", "server", "client", "state", "proto", "template",
		"limit", NULL
	};
	static const char *const protos[] = { "tcp", "udp", "sctp", NULL };
	const char *word = arg_next(a), *value;
	int rc;

	if (!strcmp(word, "service"))
		return parse_service(a, f);
	if (!strcmp(word, "server")) {
		f->by_server = true;
		return parse_srv_id(a, NULL, &f->server);
	}
	if (!strcmp(word, "state"))
		return parse_state(a, f);
	if (!strcmp(word, "limit"))
		return arg_u32(a, NULL, word, RANGE(1, UINT32_MAX), &f->limit);
	if (!strcmp(word, "template")) {
		f->template = true;
		return RC_OK;
	}
	if (strcmp(word, "client") && strcmp(word, "proto"))
		return arg_unknown(NULL, "filter", word, known);
	rc = arg_value(a, NULL, word, &value);
	if (rc)
		return rc;
	if (!strcmp(word, "client")) {
		f->by_client = true;
		return parse_prefix(value, NULL, &f->client_af, &f->client,
				    &f->client_len);
	}
	f->by_proto = true;
	return proto_parse(value, &f->proto) ? RC_OK :
	       arg_unknown(NULL, "protocol", value, protos);
}

static bool is_of(const struct svc_id *svc, const struct conn *c)
{
	if (c->af != svc->af)
		return false;
	if (svc->fwmark)
		return c->mark == svc->fwmark;
	if (c->proto != svc->proto)
		return false;
	/* The module has left out those of another service there. */
	if (svc_is_range(svc))
		return ip_in_prefix(c->af, &c->vip, svc->af, &svc->addr,
				    svc->prefix_len) && svc_has_port(svc, c->vport);
	return ip_equal(&c->vip, &svc->addr) &&
	       (!svc->port || c->vport == svc->port);
}

bool conn_passes(const struct conn_filter *f, const struct conn *c)
{
	if (f->af && c->af != f->af)
		return false;
	if (f->template && !c->template)
		return false;
	if (f->by_proto && c->proto != f->proto)
		return false;
	if (f->state && strcmp(c->state, f->state))
		return false;
	if (f->by_client && !ip_in_prefix(c->af, &c->client, f->client_af,
					  &f->client, f->client_len))
		return false;
	if (f->by_server &&
	    (c->server_af != f->server.af ||
	     !ip_equal(&c->server, &f->server.addr) ||
	     (f->server.has_port && c->server_port != f->server.port)))
		return false;
	return !f->by_service || is_of(&f->service, c);
}

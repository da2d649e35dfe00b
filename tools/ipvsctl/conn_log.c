// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl conn log`: a line for each connection that has ended, of services with
 * "log on".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "args.h"
#include "backend.h"
#include "conn_filter.h"
#include "conn_log.h"
#include "err.h"
#include "follow.h"
#include "ipfix.h"
#include "kern_log.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "wire.h"
#include "../../kernel/l4lb.h"

struct log {
	struct conn_filter filter;
	uint32_t seen;
};

static bool is_full(const struct log *l)
{
	return l->filter.limit && l->seen >= l->filter.limit;
}

static const char *why_text(uint32_t why)
{
	static const char *const words[] = {
		[L4LB_END_UNSPEC] = "unknown",
		[L4LB_END_EXPIRED] = "expired", [L4LB_END_REUSED] = "reused",
		[L4LB_END_MOVED] = "moved", [L4LB_END_LOST] = "lost",
		[L4LB_END_KILLED] = "killed", [L4LB_END_EVICTED] = "evicted",
		[L4LB_END_REPLACED] = "replaced",
	};

	return why < ARRAY_SIZE(words) ? words[why] : words[L4LB_END_UNSPEC];
}

static const char *forward_text(const struct conn *c)
{
	const char *name = forward_name(c->forward);

	return name ? name : "unknown";
}

/* From its first packet to its last one, in milliseconds. */
static uint64_t used_for(const struct ended *e)
{
	return e->lasted > e->idle ? e->lasted - e->idle : 0;
}

static const char *time_before(const struct ended *e, uint64_t milliseconds)
{
	return follow_time((long long)(e->time - milliseconds * 1000000));
}

static void print_text(const struct ended *e)
{
	const struct conn *c = &e->conn;
	uint64_t used = used_for(e);

	printf("%s %s %s", time_before(e, 0), proto_name(c->proto),
	       ip_port_text(c->af, &c->client, c->client_port));
	printf(" -> %s", ip_port_text(c->af, &c->vip, c->vport));
	printf(" -> %s", ip_port_text(c->server_af, &c->server,
				      c->server_port));
	printf(" %s %llu.%03u s %s %s%s\n", forward_text(c),
	       (unsigned long long)(used / 1000), (unsigned int)(used % 1000),
	       c->state, why_text(e->why), e->copy ? " copy" : "");
}

static void print_json(const struct ended *e)
{
	const struct conn *c = &e->conn;
	json_t *o = json_object();

	json_object_set_new(o, "ended", json_string(time_before(e, 0)));
	json_object_set_new(o, "last_packet",
			    json_string(time_before(e, e->idle)));
	json_object_set_new(o, "began",
			    json_string(time_before(e, e->lasted)));
	json_object_set_new(o, "seconds",
			    json_real((double)used_for(e) / 1000));
	json_object_set_new(o, "protocol", json_string(proto_name(c->proto)));
	json_object_set_new(o, "client",
			    json_string(ip_text(c->af, &c->client)));
	json_object_set_new(o, "client_port", json_integer(c->client_port));
	json_object_set_new(o, "vip", json_string(ip_text(c->af, &c->vip)));
	json_object_set_new(o, "vport", json_integer(c->vport));
	json_object_set_new(o, "server",
			    json_string(ip_text(c->server_af, &c->server)));
	json_object_set_new(o, "server_port", json_integer(c->server_port));
	if (c->has_local) {
		json_object_set_new(o, "local", json_string(ip_text(c->af, &c->local)));
		json_object_set_new(o, "local_port", json_integer(c->local_port));
	}
	if (c->mark)
		json_object_set_new(o, "fwmark", json_integer(c->mark));
	json_object_set_new(o, "forward", json_string(forward_text(c)));
	json_object_set_new(o, "state", json_string(c->state));
	json_object_set_new(o, "why", json_string(why_text(e->why)));
	json_object_set_new(o, "copy", json_boolean(e->copy));
	print_value(o);
	putchar('\n');
}

static void take(const struct ended *e, void *arg)
{
	struct log *l = arg;

	if (is_full(l) || !conn_passes(&l->filter, &e->conn))
		return;
	l->seen++;
	if (opt.ipfix)
		ipfix_add(e);
	else if (opt.json)
		print_json(e);
	else
		print_text(e);
}

static void lose(uint64_t n, void *arg)
{
	const struct log *l = arg;

	if (is_full(l))
		return;
	if (opt.ipfix) {
		note("ipvsctl: lost %llu connections", (unsigned long long)n);
		return;
	}
	if (opt.json)
		print_value(json_pack("{s:I}", "lost", (json_int_t)n));
	else
		printf("lost %llu connections", (unsigned long long)n);
	putchar('\n');
}

static bool read_log(int *err, void *arg)
{
	const struct log_reader r = { .fn = take, .lost = lose, .arg = arg };

	*err = kern_log_read(&r);
	ipfix_flush();
	return !is_full(arg);
}

static int run(struct log *l)
{
	const struct log_reader r = { .fn = take, .lost = lose, .arg = l };
	int err = follow(kern_log_fd(), read_log, l);

	/* What had ended before the signal. */
	if (!err && !is_full(l))
		err = kern_log_finish(&r);
	ipfix_flush();
	return err;
}

static int no_log(void)
{
	int rc = fail(RC_BACKEND, "conn log",
		      "the module %s keeps no log of connections",
		      backend_name());

	hint_module();
	return rc;
}

static void print_head(void)
{
	json_t *doc;

	if (opt.ipfix) {
		note("ipvsctl: sending to %s", opt.ipfix);
	} else if (opt.json) {
		doc = doc_new();
		json_object_set_new(doc, "log", json_string("connections"));
		print_doc(doc);
	} else {
		note("ipvsctl: listening to services with \"log on\"");
	}
}

int conn_log(struct args *a)
{
	struct log l = { .filter = { .af = (uint16_t)opt.family } };
	int rc = RC_OK, err;

	while (!rc && arg_peek(a))
		rc = conn_filter_word(a, &l.filter);
	if (!rc && l.filter.template)
		rc = fail(RC_USAGE, "conn log", "templates have no record");
	if (!rc && opt.columns)
		rc = fail(RC_USAGE, "conn log",
			  "lines have no columns to choose; select with -j and jq");
	if (!rc && opt.ipfix)
		rc = ipfix_open(opt.ipfix);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_log_open();
	if (err == -EOPNOTSUPP)
		return no_log();
	if (err)
		return refuse(err, NULL, "listening to the log");
	follow_begin();
	print_head();
	err = run(&l);
	kern_log_close();
	ipfix_close();
	return err < 0 ? follow_failed(err, "reading the log") : RC_OK;
}

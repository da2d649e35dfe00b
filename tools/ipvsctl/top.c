// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl top`: the words of the command, and its form without a terminal. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "args.h"
#include "cmd.h"
#include "describe.h"
#include "err.h"
#include "opt.h"
#include "out.h"
#include "repeat.h"
#include "top_data.h"
#include "top_screen.h"
#include "top_text.h"
#include "wire.h"

enum { BATCH_WIDTH = 120 };

static json_t *rate_json(const struct rate *r)
{
	const struct { const char *key; double value; } fields[] = {
		{ "conns_per_second", r->conns },
		{ "in_packets_per_second", r->inpkts },
		{ "out_packets_per_second", r->outpkts },
		{ "in_bytes_per_second", r->inbytes },
		{ "out_bytes_per_second", r->outbytes },
		{ "answer_p99_us", r->p99 },
	};
	size_t n = ARRAY_SIZE(fields) - (r->p99 <= 0);
	json_t *o = json_object();
	size_t i;

	for (i = 0; i < n; i++)
		json_object_set_new(o, fields[i].key, json_real(fields[i].value));
	return o;
}

static json_t *row_json(const struct ranked *row)
{
	const struct server *srv = row->srv;
	json_t *o = json_object();
	const char *id = srv ? ip_port_text(srv->af, &srv->addr, srv->port)
			     : svc_word(&row->svc->id);

	json_object_set_new(o, "id", json_string(id));
	json_object_set_new(o, "state", json_string(srv ?
			    server_state(srv) : service_state(row->svc)));
	json_object_set_new(o, "active", json_integer((json_int_t)row->active));
	json_object_set_new(o, "inactive",
			    json_integer((json_int_t)row->inactive));
	json_object_set_new(o, "share", json_real(row->share));
	json_object_set_new(o, "rates", rate_json(&row->rate));
	return o;
}

static json_t *drops_json(const struct top_data *d)
{
	json_t *o = json_object();
	size_t i;

	for (i = 0; i < d->now.ncounters; i++) {
		enum counter_kind kind = snapshot_counter_kind(&d->now, i);

		if (kind == COUNTER_DROPPED_PACKETS ||
		    kind == COUNTER_DROPPED_CONNS)
			json_object_set_new(o, d->now.counters[i].name,
					    json_real(d->rates.counters[i]));
	}
	return o;
}

static int print_json(const struct top_data *d)
{
	json_t *doc = doc_new(), *services = json_array(), *servers = NULL;
	size_t i;

	for (i = 0; i < d->ranking.n; i++) {
		const struct ranked *row = &d->ranking.rows[i];
		json_t *o = row_json(row);

		if (row->srv) {
			json_array_append_new(servers, o);
			continue;
		}
		servers = json_array();
		json_object_set_new(o, "servers", servers);
		json_array_append_new(services, o);
	}
	json_object_set_new(doc, "time", json_real(repeat_time()));
	json_object_set_new(doc, "rates", rate_json(&d->rates.total));
	json_object_set_new(doc, "drops_per_second", drops_json(d));
	json_object_set_new(doc, "services", services);
	return print_doc(doc);
}

static int batch_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint32_t n;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	if (columns && parse_u32(columns, 20, TOP_WIDTH_MAX, &n))
		return (int)n;
	return BATCH_WIDTH;
}

static int print_text(const struct top_data *d)
{
	static struct top_layout layout;
	char buf[TOP_LINE_BYTES];
	size_t i;
	int line;

	top_layout(&layout, batch_width(), d, 0, d->ranking.n);
	for (line = 0; line < TOP_HEAD_LINES; line++) {
		top_text_head(&layout, d, line, buf);
		puts(buf);
	}
	top_text_columns(&layout, d, buf);
	puts(buf);
	for (i = 0; i < d->ranking.n; i++) {
		top_text_row(&layout, d, &d->ranking.rows[i], buf);
		puts(buf);
	}
	return RC_OK;
}

struct batch {
	struct top_data *data;
	uint32_t left;		/* screens still to print; 0: no end */
};

static int print_batch(void *arg)
{
	struct batch *b = arg;
	int rc = top_data_read(b->data);

	if (!rc)
		rc = opt.json ? print_json(b->data) : print_text(b->data);
	if (b->left && !--b->left)
		repeat_stop();
	return rc;
}

/* "sort KEY" has more keys here than in listings. */
static int parse_sort(struct args *a, struct rank_by *by)
{
	const char *known[8] = { NULL }, *word;
	int i, k;

	for (i = a->pos; i < a->count && strcmp(a->word[i], "sort"); i++)
		;
	if (i == a->count)
		return RC_OK;
	word = i + 1 < a->count ? a->word[i + 1] : NULL;
	for (k = 0; (known[k] = rank_word(k)); k++)
		if (word && !strcmp(word, known[k]))
			break;
	if (!word)
		return fail(RC_USAGE, NULL,
			    "\"sort\" needs a value: conns, packets, bytes, active or name");
	if (!known[k])
		return arg_unknown(NULL, "sort key", word, known);
	by->key = (enum rank_key)k;
	memmove(&a->word[i], &a->word[i + 2],
		(size_t)(a->count - i - 2) * sizeof(a->word[0]));
	a->count -= 2;
	return RC_OK;
}

/* -n is another option elsewhere, but top(1) has made it a habit here. */
static int parse_count(struct args *a, uint32_t *count)
{
	if (!opt.dry_run)
		return RC_OK;
	opt.dry_run = false;
	if (!(opt.given & OPT_BATCH))
		return fail(RC_USAGE, NULL, "\"top -n N\" needs -b");
	return arg_u32(a, NULL, "-n", RANGE(1, UINT32_MAX), count);
}

static int run(struct args *a)
{
	struct top_data d = { .by = { .servers = true } };
	struct batch b = { .data = &d };
	int rc = parse_count(a, &b.left);

	if (!rc)
		rc = parse_sort(a, &d.by);
	if (!rc)
		rc = filter_parse(a, &d.filter, true);
	d.secs = opt.watch_secs ? opt.watch_secs : 1;
	if (!rc && opt.json && !(opt.given & OPT_BATCH)) {
		rc = fail(RC_USAGE, NULL, "top prints JSON only without its screen");
		hint("try: ipvsctl top -b -j");
	}
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	opt.watch_secs = d.secs;
	rc = opt.given & OPT_BATCH ? repeat_run(print_batch, &b)
				   : top_screen_run(&d);
	top_data_free(&d);
	return rc;
}

static const struct verb verbs[] = {
	{ "top", run, "[ID [SRV]] [MATCH]... [sort {conns|packets|bytes|active|name}]",
	  "who does most, drawn once a second; -b -n N: printed N times", OPT_WATCH | OPT_BATCH },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_top = {
	"top", NULL, verbs, "rates, shares and drops, live", NOUN_SINGLE
};

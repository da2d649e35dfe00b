// SPDX-License-Identifier: GPL-2.0
/* All that is written is ASCII, but for the bars where the terminal has UTF-8. */
#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "backend.h"
#include "describe.h"
#include "err.h"
#include "model.h"
#include "top_data.h"
#include "top_text.h"

enum {
	COL_CONNS, COL_INPKTS, COL_OUTPKTS, COL_INBYTES, COL_OUTBYTES,
	COL_ACTIVE, COL_INACTIVE, COL_P99, COL_SHARE
};

enum { NUMBER_WIDTH = 8, NAME_MIN = 10, BAR_MIN = 6, BAR_MAX = 60 };

static const char *const heads[TOP_COLUMNS] = {
	"CONN/s", "IN p/s", "OUT p/s", "IN B/s", "OUT B/s", "ACTIVE", "INACT",
	"P99 ms", "SHARE"
};

/* The most important ones first: the rest gives way where there is no room. */
static const int importance[TOP_COLUMNS] = {
	COL_CONNS, COL_ACTIVE, COL_SHARE, COL_P99, COL_INBYTES, COL_OUTBYTES,
	COL_INPKTS, COL_OUTPKTS, COL_INACTIVE
};

/* A number in at most five characters: 7, 1.2k, 34M. */
static const char *short_number(double value)
{
	static const char units[] = " kMGTPE";
	static char text[8][16];
	static int next;
	char *out = text[next++ % 8];
	size_t unit = 0;

	while (value >= 999.5 && unit < sizeof(units) - 2) {
		value /= 1000;
		unit++;
	}
	if (!unit)
		snprintf(out, sizeof(text[0]), value > 0 && value < 9.95 &&
			 value != (double)(int)value ? "%.1f" : "%.0f", value);
	else
		snprintf(out, sizeof(text[0]), value < 9.95 ? "%.1f%c" : "%.0f%c",
			 value, units[unit]);
	return out;
}

/* Cuts the line, which is ASCII, and removes blanks at its end. */
static void finish(const struct top_layout *l, char *buf)
{
	size_t n = strlen(buf);

	if (n > (size_t)l->width)
		n = (size_t)l->width;
	while (n && buf[n - 1] == ' ')
		n--;
	buf[n] = '\0';
}

static void add(char *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void add(char *buf, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + n, TOP_LINE_BYTES - n, fmt, ap);
	va_end(ap);
}

static const char *row_name(const struct ranked *row)
{
	static char name[128];

	if (row->srv)
		snprintf(name, sizeof(name), "  %s",
			 ip_port_text(row->srv->af, &row->srv->addr,
				      row->srv->port));
	else
		snprintf(name, sizeof(name), "%s", svc_text(&row->svc->id));
	return name;
}

/* Servers of a service differ at the end of their names, so that is kept. */
static const char *fitted_name(const struct top_layout *l,
			       const struct ranked *row)
{
	const char *name = row_name(row);
	int cut = (int)strlen(name) - l->name;
	static char text[128];

	if (cut <= 0 || !row->srv)
		return name;
	snprintf(text, sizeof(text), "  <%s", name + 3 + cut);
	return text;
}

static bool measures(const struct top_data *d)
{
	size_t i;

	for (i = 0; i < d->now.list.n; i++)
		if (service_measures(&d->now.list.v[i]))
			return true;
	return false;
}

void top_layout(struct top_layout *l, int width, const struct top_data *d,
		size_t from, size_t count)
{
	int left, need = l->width == width ? l->name : 16;
	size_t i;

	if (width > TOP_WIDTH_MAX)
		width = TOP_WIDTH_MAX;
	l->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	for (i = from; i < d->ranking.n && i < from + count; i++) {
		int n = (int)strlen(row_name(&d->ranking.rows[i]));

		if (n > need)
			need = n;
	}
	/* A long name is cut before the last number goes. */
	l->width = width;
	if (need > width - 2 - NUMBER_WIDTH)
		need = width - 2 - NUMBER_WIDTH;
	l->name = need < NAME_MIN ? NAME_MIN : need;
	left = width - 2 - l->name;
	for (i = 0; i < TOP_COLUMNS; i++) {
		l->shown[importance[i]] = false;
		if (importance[i] == COL_P99 && !measures(d))
			continue;
		l->shown[importance[i]] = left >= NUMBER_WIDTH;
		left -= left >= NUMBER_WIDTH ? NUMBER_WIDTH : left;
	}
	/* A bar is worth the columns that come last. */
	if (left <= BAR_MIN && l->shown[COL_OUTPKTS]) {
		left += NUMBER_WIDTH * (1 + l->shown[COL_INACTIVE]);
		l->shown[COL_OUTPKTS] = false;
		l->shown[COL_INACTIVE] = false;
	}
	l->bar = left > BAR_MIN ? left - 1 : 0;
	if (l->bar > BAR_MAX)
		l->bar = BAR_MAX;
}

/* Adds a part of a line of the head if all of it fits. */
static void add_part(const struct top_layout *l, char *buf, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

static void add_part(const struct top_layout *l, char *buf, const char *fmt, ...)
{
	char part[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(part, sizeof(part), fmt, ap);
	va_end(ap);
	if (strlen(buf) + strlen(part) <= (size_t)l->width)
		add(buf, "%s", part);
}

static void head_title(const struct top_layout *l, const struct top_data *d,
		       char *buf)
{
	size_t i, servers = 0;
	char clock[16];
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	for (i = 0; i < d->now.list.n; i++)
		servers += d->now.list.v[i].nservers;
	add(buf, "%s %s", backend_name(), clock);
	if (d->paused)
		add_part(l, buf, "  PAUSED");
	add_part(l, buf, "  %zu services", d->now.list.n);
	add_part(l, buf, "  %zu servers", servers);
	add_part(l, buf, "  every %u s", d->secs);
	if (d->by.pattern[0])
		add_part(l, buf, "  filter: %s", d->by.pattern);
}

static void head_totals(const struct top_layout *l, const struct top_data *d,
			char *buf)
{
	const struct rate *r = &d->rates.total;
	double active = 0, inactive = 0;
	size_t i, j;

	for (i = 0; i < d->now.list.n; i++) {
		const struct service *svc = &d->now.list.v[i];

		for (j = 0; j < svc->nservers; j++) {
			active += svc->servers[j].active;
			inactive += svc->servers[j].inactive;
		}
	}
	add(buf, "%s conn/s", short_number(r->conns));
	add_part(l, buf, "  %s active", short_number(active));
	add_part(l, buf, "  %s inactive", short_number(inactive));
	if (d->now.has_conn_max && d->now.conn_max)
		add_part(l, buf, " of %s", short_number((double)d->now.conn_max));
	add_part(l, buf, "  in %s p/s %s B/s", short_number(r->inpkts),
		 short_number(r->inbytes));
	add_part(l, buf, "  out %s p/s %s B/s", short_number(r->outpkts),
		 short_number(r->outbytes));
}

static void head_drops(const struct top_layout *l, const struct top_data *d,
		       char *buf)
{
	bool any = false;
	size_t i;

	if (!d->now.ncounters) {
		add(buf, "drops: not counted by %s", backend_name());
		return;
	}
	add(buf, "drops/s:");
	for (i = 0; i < d->now.ncounters; i++) {
		enum counter_kind kind = snapshot_counter_kind(&d->now, i);

		if ((kind != COUNTER_DROPPED_PACKETS &&
		     kind != COUNTER_DROPPED_CONNS) || d->rates.counters[i] <= 0)
			continue;
		add_part(l, buf, " %s %s", d->now.counters[i].name,
			 short_number(d->rates.counters[i]));
		any = true;
	}
	if (!any)
		add(buf, " none");
}

void top_text_head(const struct top_layout *l, const struct top_data *d,
		   int line, char *buf)
{
	buf[0] = '\0';
	if (!line)
		head_title(l, d, buf);
	else if (line == 1)
		head_totals(l, d, buf);
	else
		head_drops(l, d, buf);
	finish(l, buf);
}

void top_text_columns(const struct top_layout *l, const struct top_data *d,
		      char *buf)
{
	int i;

	buf[0] = '\0';
	add(buf, "  %-*.*s", l->name, l->name,
	    d->by.servers ? "SERVICE / SERVER" : "SERVICE");
	for (i = 0; i < TOP_COLUMNS; i++)
		if (l->shown[i])
			add(buf, "%*s", NUMBER_WIDTH, heads[i]);
	if (l->bar)
		add(buf, " %s", d->by.key == RANK_NAME ? "conns"
						       : rank_word(d->by.key));
	finish(l, buf);
}

/* What a colour says, too: ! no server, D draining, F at its threshold. */
static char mark(const struct ranked *row)
{
	if (!row->srv)
		return service_is_down(row->svc) ? '!' : ' ';
	if (!row->srv->weight)
		return 'D';
	return server_is_overloaded(row->srv) ? 'F' : ' ';
}

static void add_bar(const struct top_layout *l, double share, char *buf)
{
	int i, n = (int)(share * l->bar + 0.5);

	if (n > l->bar)
		n = l->bar;
	if (n)
		add(buf, " ");
	for (i = 0; i < n; i++)
		add(buf, "%s", l->utf8 ? "\xe2\x96\x88" : "#");
}

void top_text_row(const struct top_layout *l, const struct top_data *d,
		  const struct ranked *row, char *buf)
{
	const double values[TOP_COLUMNS] = {
		row->rate.conns, row->rate.inpkts, row->rate.outpkts,
		row->rate.inbytes, row->rate.outbytes, (double)row->active,
		(double)row->inactive, 0, 0
	};
	int i;

	(void)d;
	buf[0] = '\0';
	add(buf, "%c %-*.*s", mark(row), l->name, l->name, fitted_name(l, row));
	for (i = 0; i < TOP_COLUMNS; i++) {
		if (!l->shown[i])
			continue;
		if (i == COL_P99 && row->rate.p99 <= 0)
			add(buf, "%*s", NUMBER_WIDTH, "-");
		else if (i == COL_P99)
			add(buf, "%*.*f", NUMBER_WIDTH, row->rate.p99 < 99950 ? 2 : 0,
			    row->rate.p99 / 1000);
		else if (i == COL_SHARE)
			add(buf, "%*.1f%%", NUMBER_WIDTH - 1, 100 * row->share);
		else
			add(buf, "%*s", NUMBER_WIDTH, short_number(values[i]));
	}
	finish(l, buf);
	if (l->bar)
		add_bar(l, row->share, buf);
}

void top_text_counter(const struct top_layout *l, const struct top_data *d,
		      size_t i, char *buf)
{
	const struct proc_counter *c = &d->now.counters[i];

	buf[0] = '\0';
	add(buf, "  %-20s %8s/s %12llu", c->name,
	    short_number(d->rates.counters[i]), (unsigned long long)c->value);
	finish(l, buf);
}

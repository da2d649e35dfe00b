// SPDX-License-Identifier: GPL-2.0
/* Metrics keep their name, unit and labels for ever, because dashboards and
 * alerts name them. Rates are left to Prometheus, which sees every reset of a
 * counter. The samples of a metric must stand together, so the services are
 * walked once for each metric.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "backend.h"
#include "latency.h"
#include "model.h"
#include "prometheus.h"
#include "snapshot.h"
#include "version.h"

static void head(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_value(uint64_t value)
{
	printf(" %llu\n", (unsigned long long)value);
}

/* A label's value: whoever named it, it cannot end the line or the string. */
static void put_label(const char *name, const char *value)
{
	printf("%s=\"", name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", stdout);
		else if (*value == '"' || *value == '\\')
			printf("\\%c", *value);
		else
			putchar(*value);
	}
	putchar('"');
}

/* What services, servers and the namespace have in common. A counter with a
 * direction is one of two samples.
 */
static const struct total {
	const char *name, *help;
	size_t in, out;		/* offsets in struct counters */
} totals[] = {
	{ "connections", "Connections accepted",
	  offsetof(struct counters, conns), 0 },
	{ "packets", "Packets from clients (in) and from real servers (out)",
	  offsetof(struct counters, inpkts), offsetof(struct counters, outpkts) },
	{ "bytes", "Bytes of IP packets from clients (in) and from real servers (out)",
	  offsetof(struct counters, inbytes), offsetof(struct counters, outbytes) },
};

static uint64_t at(const struct counters *c, size_t offset)
{
	return *(const uint64_t *)((const char *)c + offset);
}

/* @labels: printed already up to a possible comma, or NULL for none. */
struct sample {
	const char *metric, *service, *server;
};

static void put_labels(const struct sample *s, const char *name,
		       const char *value)
{
	const struct { const char *name, *value; } labels[] = {
		{ "service", s->service }, { "server", s->server },
		{ name, value },
	};
	const char *before = "{";
	size_t i;

	fputs(s->metric, stdout);
	for (i = 0; i < ARRAY_SIZE(labels); i++) {
		if (!labels[i].value)
			continue;
		fputs(before, stdout);
		put_label(labels[i].name, labels[i].value);
		before = ",";
	}
	if (*before == ',')
		putchar('}');
}

static void put_total(const struct sample *s, const struct total *t,
		      const struct counters *c)
{
	put_labels(s, "direction", t->out ? "in" : NULL);
	put_value(at(c, t->in));
	if (!t->out)
		return;
	put_labels(s, "direction", "out");
	put_value(at(c, t->out));
}

static void whole_totals(const struct snapshot *s)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(totals); i++) {
		char metric[64], help[160];
		const struct sample one = { .metric = metric };

		snprintf(metric, sizeof(metric), "ipvs_%s_total", totals[i].name);
		snprintf(help, sizeof(help), "%s by all services.", totals[i].help);
		head(metric, "counter", help);
		put_total(&one, &totals[i], &s->total);
	}
}

static void service_totals(const struct snapshot *s, const struct total *t)
{
	char metric[64], help[160];
	size_t i;

	snprintf(metric, sizeof(metric), "ipvs_service_%s_total", t->name);
	snprintf(help, sizeof(help), "%s by a service.", t->help);
	head(metric, "counter", help);
	for (i = 0; i < s->list.n; i++) {
		const struct service *svc = &s->list.v[i];
		const struct sample one = { metric, svc_word(&svc->id), NULL };

		put_total(&one, t, &svc->stats);
	}
}

typedef void put_server_fn(const struct sample *one, const struct server *srv,
			   const void *arg);

/* Calls @put for each real server of each service. */
static void each_server(const struct snapshot *s, const char *metric,
			put_server_fn *put, const void *arg)
{
	size_t i, j;

	for (i = 0; i < s->list.n; i++) {
		const struct service *svc = &s->list.v[i];
		char name[96];

		snprintf(name, sizeof(name), "%s", svc_word(&svc->id));
		for (j = 0; j < svc->nservers; j++) {
			const struct server *srv = &svc->servers[j];
			const struct sample one = { metric, name,
				ip_port_text(srv->af, &srv->addr, srv->port) };

			put(&one, srv, arg);
		}
	}
}

static void put_server_total(const struct sample *one, const struct server *srv,
			     const void *arg)
{
	put_total(one, arg, &srv->stats);
}

static void server_totals(const struct snapshot *s, const struct total *t)
{
	char metric[64], help[160];

	snprintf(metric, sizeof(metric), "ipvs_server_%s_total", t->name);
	snprintf(help, sizeof(help), "%s by a real server of a service.", t->help);
	head(metric, "counter", help);
	each_server(s, metric, put_server_total, t);
}

static uint64_t srv_active(const struct server *srv)
{
	return srv->active;
}

static uint64_t srv_inactive(const struct server *srv)
{
	return srv->inactive;
}

static uint64_t srv_persistent(const struct server *srv)
{
	return srv->persistent;
}

static uint64_t srv_weight(const struct server *srv)
{
	return srv->weight;
}

static uint64_t srv_max(const struct server *srv)
{
	return srv->max_conns;
}

static uint64_t srv_overloaded(const struct server *srv)
{
	return server_is_overloaded(srv);
}

static const struct gauge {
	const char *name, *help;
	uint64_t (*get)(const struct server *srv);
	bool sum;		/* services have it, too: the sum of theirs */
} gauges[] = {
	{ "active_connections", "Connections now that are established.",
	  srv_active, true },
	{ "inactive_connections", "Connections now in any other state.",
	  srv_inactive, true },
	{ "persistent_connections", "Persistent clients now.",
	  srv_persistent, true },
	{ "weight", "Weight; 0 while it drains.", srv_weight, false },
	{ "max_connections", "Upper threshold of connections; 0: none.",
	  srv_max, false },
	{ "overloaded", "1 if the upper threshold is reached.",
	  srv_overloaded, false },
};

static void put_server_gauge(const struct sample *one, const struct server *srv,
			     const void *arg)
{
	const struct gauge *g = arg;

	put_labels(one, NULL, NULL);
	put_value(g->get(srv));
}

static void server_gauge(const struct snapshot *s, const struct gauge *g)
{
	char metric[64];

	snprintf(metric, sizeof(metric), "ipvs_server_%s", g->name);
	head(metric, "gauge", g->help);
	each_server(s, metric, put_server_gauge, g);
}

static void service_gauge(const struct snapshot *s, const struct gauge *g)
{
	char metric[64];
	size_t i, j;

	snprintf(metric, sizeof(metric), "ipvs_service_%s", g->name);
	head(metric, "gauge", g->help);
	for (i = 0; i < s->list.n; i++) {
		const struct service *svc = &s->list.v[i];
		const struct sample one = { metric, svc_word(&svc->id), NULL };
		uint64_t sum = 0;

		for (j = 0; j < svc->nservers; j++)
			sum += g->get(&svc->servers[j]);
		put_labels(&one, NULL, NULL);
		put_value(sum);
	}
}

static void service_states(const struct snapshot *s)
{
	size_t i, j;

	head("ipvs_service_info", "gauge", "A service and its scheduler; always 1.");
	for (i = 0; i < s->list.n; i++) {
		const struct service *svc = &s->list.v[i];
		const struct sample one = { "ipvs_service_info",
					    svc_word(&svc->id), NULL };

		put_labels(&one, "scheduler", svc->scheduler);
		put_value(1);
	}
	head("ipvs_service_available_servers", "gauge",
	     "Real servers that take new connections.");
	for (i = 0; i < s->list.n; i++) {
		const struct service *svc = &s->list.v[i];
		const struct sample one = { "ipvs_service_available_servers",
					    svc_word(&svc->id), NULL };
		uint64_t n = 0;

		for (j = 0; j < svc->nservers; j++)
			n += svc->servers[j].weight &&
			     !server_is_overloaded(&svc->servers[j]);
		put_labels(&one, NULL, NULL);
		put_value(n);
	}
}

/* `priority las`: how much of the replies belongs to short transfers. */
static void bands(const struct snapshot *s, const char *metric,
		  const char *help, bool bytes)
{
	bool headed = false;
	size_t i, j;

	for (i = 0; i < s->list.n; i++) {
		const struct service *svc = &s->list.v[i];
		const struct sample one = { metric, svc_word(&svc->id), NULL };

		for (j = 0; svc->has_bands && j < L4LB_BANDS; j++) {
			uint32_t end = policy_band_end(&svc->policy, j);
			char below[16] = "+Inf";

			if (end)
				snprintf(below, sizeof(below), "%u", end);
			if (!headed)
				head(metric, "counter", help);
			headed = true;
			put_labels(&one, "below", below);
			put_value(bytes ? svc->bands[j].bytes
					: svc->bands[j].packets);
			if (!end)
				break;
		}
	}
}

/* Only services that have had a limit. */
static void limited(const struct snapshot *s)
{
	static const char metric[] = "ipvs_service_limited_total";
	bool headed = false;
	size_t i;

	for (i = 0; i < s->list.n; i++) {
		const struct service *svc = &s->list.v[i];
		const struct sample one = { metric, svc_word(&svc->id), NULL };

		if (!svc->has_limited)
			continue;
		if (!headed)
			head(metric, "counter",
			     "New connections that a limit of the service refused.");
		headed = true;
		put_labels(&one, NULL, NULL);
		put_value(svc->limited);
	}
}

/* Only services that have a shadow. */
static void shadows(const struct snapshot *s, const char *metric, const char *help,
		    size_t at)
{
	bool headed = false;
	size_t i;

	for (i = 0; i < s->list.n; i++) {
		const struct service *svc = &s->list.v[i];
		const struct sample one = { metric, svc_word(&svc->id), NULL };
		const char *counts = (const char *)&svc->shadow;

		if (!svc->shadow.known)
			continue;
		if (!headed)
			head(metric, "counter", help);
		headed = true;
		put_labels(&one, "shadow", svc->policy.shadow);
		put_value(*(const uint64_t *)(counts + at));
	}
}

/* ---- latency, of real servers that were measured ---- */

static const struct duration {
	const char *name, *help;
	size_t at;		/* offset in struct server_latency */
} durations[] = {
	{ "handshake", "From a client's SYN or INIT to the real server's answer",
	  offsetof(struct server_latency, handshake) },
	{ "answer", "From a client's first payload to the first that came back",
	  offsetof(struct server_latency, answer) },
};

static const struct latency *latency_of(const struct server *srv,
					const struct duration *d)
{
	return srv->latency ? (const void *)((const char *)srv->latency + d->at) : NULL;
}

static void put_suffixed(const struct sample *one, const char *suffix)
{
	struct sample whole = *one;
	char metric[80];

	snprintf(metric, sizeof(metric), "%s_%s", one->metric, suffix);
	whole.metric = metric;
	put_labels(&whole, NULL, NULL);
}

static void put_histogram(const struct sample *one, const struct server *srv,
			  const void *arg)
{
	const struct latency *l = latency_of(srv, arg);
	struct sample bucket = *one;
	char metric[80], end[32];
	uint64_t n = 0;
	unsigned int i;

	if (!l)
		return;
	snprintf(metric, sizeof(metric), "%s_bucket", one->metric);
	bucket.metric = metric;
	for (i = 0; i < L4LB_LATENCY_BUCKETS; i++) {
		n += l->bucket[i];
		if (latency_end(i))
			snprintf(end, sizeof(end), "%.9g", (double)latency_end(i) / 1e6);
		else
			snprintf(end, sizeof(end), "+Inf");
		put_labels(&bucket, "le", end);
		put_value(n);
	}
	put_suffixed(one, "sum");
	printf(" %.6f\n", (double)l->sum / 1e6);
	put_suffixed(one, "count");
	put_value(n);
}

static void put_failed(const struct sample *one, const struct server *srv,
		       const void *arg)
{
	const struct latency *l = latency_of(srv, arg);

	if (!l)
		return;
	put_labels(one, "how", "refused");
	put_value(l->refused);
	put_labels(one, "how", "unanswered");
	put_value(l->unanswered);
}

static bool any_latency(const struct snapshot *s)
{
	size_t i, j;

	for (i = 0; i < s->list.n; i++)
		for (j = 0; j < s->list.v[i].nservers; j++)
			if (s->list.v[i].servers[j].latency)
				return true;
	return false;
}

static void latencies(const struct snapshot *s)
{
	char metric[64], help[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(durations); i++) {
		const struct duration *d = &durations[i];

		snprintf(metric, sizeof(metric), "ipvs_server_%s_seconds", d->name);
		snprintf(help, sizeof(help), "%s.", d->help);
		head(metric, "histogram", help);
		each_server(s, metric, put_histogram, d);
		snprintf(metric, sizeof(metric), "ipvs_server_%s_failed_total", d->name);
		snprintf(help, sizeof(help), "%s: a reset, or nothing.", d->help);
		head(metric, "counter", help);
		each_server(s, metric, put_failed, d);
	}
}

static void labelled(const struct snapshot *s, enum counter_kind kind,
		     const struct sample *one, const char *label)
{
	size_t i;

	for (i = 0; i < s->ncounters; i++) {
		if (snapshot_counter_kind(s, i) != kind)
			continue;
		put_labels(one, label, s->counters[i].name);
		put_value(s->counters[i].value);
	}
}

static bool is_metric_name(const char *name)
{
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

/* Those of synchronisation have a unit in their name. */
static void other_counters(const struct snapshot *s)
{
	size_t i;

	for (i = 0; i < s->ncounters; i++) {
		const char *name = s->counters[i].name;
		char metric[64], help[96];

		if (snapshot_counter_kind(s, i) != COUNTER_OTHER ||
		    !is_metric_name(name))
			continue;
		snprintf(metric, sizeof(metric), "ipvs_%s_total", name);
		snprintf(help, sizeof(help), "Counter %s of /proc/net/l4lb.", name);
		head(metric, "counter", help);
		fputs(metric, stdout);
		put_value(s->counters[i].value);
	}
}

static void counters(const struct snapshot *s)
{
	static const struct sample packets = { .metric = "ipvs_dropped_packets_total" },
		conns = { .metric = "ipvs_dropped_connections_total" },
		fast = { .metric = "ipvs_fast_path_packets_total" };

	if (!s->ncounters)
		return;
	head(packets.metric, "counter", "Packets dropped, by reason.");
	labelled(s, COUNTER_DROPPED_PACKETS, &packets, "reason");
	head(conns.metric, "counter",
	     "Connections ended to make room or by a defence, by reason.");
	labelled(s, COUNTER_DROPPED_CONNS, &conns, "reason");
	head(fast.metric, "counter",
	     "Packets seen by the fast path: sent (fast), or why they took the stack.");
	labelled(s, COUNTER_FAST_PATH, &fast, "outcome");
	other_counters(s);
}

static uint64_t peer_value(const struct sync_peer *p, size_t which)
{
	const uint64_t values[] = {
		p->state, p->gaps, p->repaired, p->lost, p->resent, p->backlog,
		p->difference
	};

	return values[which];
}

static void peers(const struct snapshot *s)
{
	static const struct { const char *name, *type, *help; } metrics[] = {
		{ "ipvs_sync_peer_state", "gauge",
		  "Another director: 0 absent, 1 joining, 2 in step." },
		{ "ipvs_sync_peer_gaps_total", "counter",
		  "Messages of a peer that did not come at first." },
		{ "ipvs_sync_peer_repaired_total", "counter",
		  "Messages of a peer that came when they were sent again." },
		{ "ipvs_sync_peer_lost_total", "counter",
		  "Messages of a peer that never came." },
		{ "ipvs_sync_peer_resent_total", "counter",
		  "Messages sent to a peer again." },
		{ "ipvs_sync_peer_backlog_messages", "gauge",
		  "Messages that a peer had still to send." },
		{ "ipvs_sync_peer_difference_slices", "gauge",
		  "Slices of 4096 that differed in the last comparison." },
	};
	size_t i;
	int j;

	for (i = 0; s->npeers && i < ARRAY_SIZE(metrics); i++) {
		const struct sample one = { .metric = metrics[i].name };

		head(metrics[i].name, metrics[i].type, metrics[i].help);
		for (j = 0; j < s->npeers; j++) {
			const struct sync_peer *p = &s->peers[j];

			put_labels(&one, "peer", ip_text(p->af, &p->addr));
			put_value(peer_value(p, i));
		}
	}
}

static void module_facts(const struct snapshot *s)
{
	const char *version = backend_version();

	head("ipvs_info", "gauge", "The module and this program; always 1.");
	fputs("ipvs_info{", stdout);
	put_label("backend", backend_name());
	putchar(',');
	put_label("backend_version", version ? version : "");
	putchar(',');
	put_label("ipvsctl_version", IPVSCTL_VERSION);
	fputs("} 1\n", stdout);
	head("ipvs_services", "gauge", "Services now.");
	fputs("ipvs_services", stdout);
	put_value(s->list.n);
	if (!s->has_conn_max)
		return;
	head("ipvs_connections_max", "gauge",
	     "Maximum of connections and persistent clients (conn_max); 0: none.");
	fputs("ipvs_connections_max", stdout);
	put_value(s->conn_max);
}

void prometheus_print(const struct snapshot *s, bool servers, bool whole)
{
	size_t i;

	if (whole) {
		module_facts(s);
		whole_totals(s);
		counters(s);
		peers(s);
	}
	service_states(s);
	for (i = 0; i < ARRAY_SIZE(totals); i++)
		service_totals(s, &totals[i]);
	for (i = 0; i < ARRAY_SIZE(gauges); i++)
		if (gauges[i].sum)
			service_gauge(s, &gauges[i]);
	bands(s, "ipvs_service_band_packets_total",
	      "Replies sent, by the bytes of replies before them in their connection.", false);
	bands(s, "ipvs_service_band_bytes_total",
	      "Bytes of replies sent, by the bytes of replies before them in their connection.",
	      true);
	limited(s);
	shadows(s, "ipvs_service_shadow_choices_total",
		"Choices that the service's shadow was asked about.",
		offsetof(struct shadow_counts, choices));
	shadows(s, "ipvs_service_shadow_agreed_total",
		"Those in which it chose the same real server.",
		offsetof(struct shadow_counts, agreed));
	shadows(s, "ipvs_service_shadow_refused_total",
		"Those in which it found no real server.",
		offsetof(struct shadow_counts, refused));
	for (i = 0; servers && i < ARRAY_SIZE(totals); i++)
		server_totals(s, &totals[i]);
	for (i = 0; servers && i < ARRAY_SIZE(gauges); i++)
		server_gauge(s, &gauges[i]);
	if (servers && any_latency(s))
		latencies(s);
}

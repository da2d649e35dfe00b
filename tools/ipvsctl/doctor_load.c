// SPDX-License-Identifier: GPL-2.0
#include "doctor_load.h"
#include "exam.h"
#include "proc.h"
#include "report.h"

enum { NEAR_PERCENT = 80 };

void check_usable(const struct exam *e, struct report *r)
{
	size_t i;

	for (i = 0; i < e->list.n; i++) {
		const struct service *svc = &e->list.v[i];
		const char *name = svc_text(&svc->id);

		if (!svc->nservers) {
			report_add(r, SEVERITY_ERROR, name,
				   "the service has no server: clients are refused");
			report_cure(r, "ipvsctl server add %s ADDR:PORT", name);
		} else if (service_is_down(svc)) {
			report_add(r, SEVERITY_ERROR, name,
				   "each server has weight 0: new clients are refused");
			report_cure(r, "ipvsctl server undrain %s ADDR:PORT", name);
		}
	}
}

void check_overload(const struct exam *e, struct report *r)
{
	size_t i, j;

	for (i = 0; i < e->list.n; i++) {
		const struct service *svc = &e->list.v[i];

		for (j = 0; j < svc->nservers; j++) {
			const struct server *srv = &svc->servers[j];

			if (!srv->weight || !server_is_overloaded(srv))
				continue;
			report_add(r, SEVERITY_WARNING,
				   exam_server_text(svc, srv),
				   "it has %u of max-conns %u, and gets no new clients",
				   srv->active + srv->inactive, srv->max_conns);
			report_cure(r, "one more server, or max-conns N if this one can take more");
		}
	}
}

static void near_limit(struct report *r, const char *name, uint64_t used,
		       uint64_t max)
{
	if (!max || used < max / 100 * NEAR_PERCENT + max % 100 * NEAR_PERCENT / 100)
		return;
	report_add(r, SEVERITY_WARNING, name,
		   "%llu of at most %llu are in use: further clients are refused",
		   (unsigned long long)used, (unsigned long long)max);
	report_cure(r, "find who opens them, or raise it if memory allows: sysctl -w %s=N",
		    name);
}

void check_conn_max(const struct exam *e, struct report *r)
{
	uint64_t max, used = 0;
	size_t i, j;

	if (!proc_setting("conn_max", &max))
		return;
	for (i = 0; i < e->list.n; i++)
		for (j = 0; j < e->list.v[i].nservers; j++) {
			const struct server *srv = &e->list.v[i].servers[j];

			used += srv->active + srv->inactive + srv->persistent;
		}
	near_limit(r, "net.ipv4.vs.conn_max", used, max);
}

void check_conntrack(const struct exam *e, struct report *r)
{
	uint64_t used, max;

	if (e->list.n &&
	    exam_number("/proc/sys/net/netfilter/nf_conntrack_count", &used) &&
	    exam_number("/proc/sys/net/netfilter/nf_conntrack_max", &max))
		near_limit(r, "net.netfilter.nf_conntrack_max", used, max);
}

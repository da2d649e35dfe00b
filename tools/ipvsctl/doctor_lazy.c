// SPDX-License-Identifier: GPL-2.0
/* It may have none, without a word: commands of family IPVS do not know of it. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "doctor_lazy.h"
#include "args.h"
#include "err.h"
#include "exam.h"
#include "proc.h"
#include "report.h"

/* A real server with NAT: replies without an entry are recognised by this. */
struct origin {
	const struct service *svc;
	const struct server *srv;
};

static bool is_lazy(const struct service *svc)
{
	return svc->policy.value[L4LB_POLICY_ATTR_CONN_STATE] ==
	       L4LB_SERVICE_STATE_LAZY;
}

/* Schedulers of others are taken at their word. */
static bool hashes(const char *scheduler)
{
	static const char *const others[] = {
		"none", "rr", "wrr", "lc", "wlc", "lblc", "lblcr", "sed", "nq",
		"fo", "ovf", "twos", "ewma", "bpf",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(scheduler, others[i]))
			return false;
	return true;
}

static int cmp_origins(const void *x, const void *y)
{
	const struct origin *a = x, *b = y;
	int d = memcmp(&a->srv->addr, &b->srv->addr, sizeof(a->srv->addr));

	if (!d)
		d = (int)a->srv->af - (int)b->srv->af;
	if (!d)
		d = (int)a->srv->port - (int)b->srv->port;
	return d ? d : (int)a->svc->id.proto - (int)b->svc->id.proto;
}

/* Those of TCP and SCTP; @n is set. NULL: no memory. */
static struct origin *origins_of(const struct exam *e, size_t *n)
{
	struct origin *v;
	size_t i, j, most = 1;

	for (i = 0; i < e->list.n; i++)
		most += e->list.v[i].nservers;
	v = calloc(most, sizeof(*v));
	*n = 0;
	for (i = 0; v && i < e->list.n; i++) {
		const struct service *svc = &e->list.v[i];

		for (j = 0; j < svc->nservers; j++)
			if (svc->servers[j].forward == IP_VS_CONN_F_MASQ &&
			    !svc->id.fwmark && svc->id.proto != IPPROTO_UDP)
				v[(*n)++] = (struct origin){ svc, &svc->servers[j] };
	}
	if (v)
		qsort(v, *n, sizeof(*v), cmp_origins);
	return v;
}

static void say_shared(struct report *r, const struct origin *lazy,
		       const struct origin *other)
{
	report_add(r, SEVERITY_WARNING, exam_server_text(lazy->svc, lazy->srv),
		   "conn-state lazy has no effect: %s has that server, too",
		   svc_text(&other->svc->id));
	report_cure(r, "another port of that server, for one of the services");
}

static void check_shared(const struct exam *e, struct report *r)
{
	size_t i, n;
	struct origin *v = origins_of(e, &n);

	if (!v) {
		report_unknown(r, "no memory");
		return;
	}
	for (i = 0; i < n; i++) {
		if (!is_lazy(v[i].svc))
			continue;
		if (i && !cmp_origins(&v[i - 1], &v[i]))
			say_shared(r, &v[i], &v[i - 1]);
		else if (i + 1 < n && !cmp_origins(&v[i], &v[i + 1]))
			say_shared(r, &v[i], &v[i + 1]);
	}
	free(v);
}

static void say(struct report *r, const struct service *svc, const char *why,
		const char *cure)
{
	report_add(r, SEVERITY_WARNING, svc_text(&svc->id),
		   "conn-state lazy has no effect: %s", why);
	report_cure(r, "%s", cure);
}

static void check_service(const struct service *svc, struct report *r)
{
	size_t i;

	if (svc->flags & IP_VS_SVC_F_PERSISTENT)
		say(r, svc, "the service is persistent",
		    "conn-state eager, or no-persistent: mh and sh keep clients together");
	else if (!hashes(svc->scheduler))
		say(r, svc, "its scheduler does not hash",
		    "scheduler mh, or conn-state eager");
	for (i = 0; i < svc->nservers; i++) {
		if (!svc->servers[i].max_conns)
			continue;
		say(r, svc, "a server of it has max-conns",
		    "conn-state eager, or servers without max-conns");
		break;
	}
}

void check_lazy(const struct exam *e, struct report *r)
{
	const struct service *any = NULL;
	uint64_t tracked;
	size_t i;

	for (i = 0; i < e->list.n; i++) {
		if (!is_lazy(&e->list.v[i]))
			continue;
		any = &e->list.v[i];
		check_service(any, r);
	}
	if (!any)
		return;
	if (proc_setting("conntrack", &tracked) && tracked)
		say(r, any, "net.ipv4.vs.conntrack is on: each first packet has an entry",
		    "conn-state eager, unless no firewall rule needs that setting");
	check_shared(e, r);
}

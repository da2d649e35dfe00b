// SPDX-License-Identifier: GPL-2.0
#include <string.h>
#include <sys/socket.h>

#include "doctor_snat.h"
#include "exam.h"
#include "report.h"
#include "snat.h"

/* The first address of the range that is not one of this machine, or NULL. */
static const struct ip *missing(const struct exam *e, const struct policy *policy)
{
	uint16_t af = (uint16_t)policy->value[L4LB_POLICY_ATTR_SNAT];
	static struct ip addr;

	for (addr = policy->snat[0]; snat_has(policy, &addr); snat_next(af, &addr))
		if (!net_addr(&e->net, af, &addr))
			return &addr;
	return NULL;
}

static void check_service(const struct exam *e, const struct service *svc,
			  struct report *r)
{
	const struct ip *away = missing(e, &svc->policy);
	uint16_t af = svc->id.af;
	size_t i;

	if (away) {
		report_add(r, SEVERITY_ERROR, svc_text(&svc->id),
			   "snat: %s is no address of this machine: replies to it are lost",
			   ip_text(af, away));
		report_cure(r, "ip addr add %s/%d dev DEVICE, or another range",
			    ip_text(af, away), af == AF_INET ? 32 : 128);
	}
	for (i = 0; i < svc->nservers; i++) {
		const struct net_route *route = exam_route(e, &svc->servers[i]);

		if (route->kind != ROUTE_UNICAST || !snat_has(&svc->policy, &route->source))
			continue;
		report_add(r, SEVERITY_WARNING, exam_server_text(svc, &svc->servers[i]),
			   "this machine's own connections to it come from %s, of snat, too",
			   ip_text(af, &route->source));
		report_cure(r, "an address for snat alone, on the same device");
		break;
	}
}

void check_snat(const struct exam *e, struct report *r)
{
	size_t i;

	for (i = 0; i < e->list.n; i++)
		if (snat_size(&e->list.v[i].policy))
			check_service(e, &e->list.v[i], r);
}

// SPDX-License-Identifier: GPL-2.0
#include <linux/ip_vs.h>

#include "doctor_rules.h"
#include "exam.h"
#include "report.h"
#include "rule_match.h"
#include "ruleset.h"

/* So many services are compared with all rules. */
enum { SERVICES_MAX = 256 };

/* The first packet of a client, which passes these chains. */
static bool request_passes(const json_t *rules, struct report *r,
			   const struct service *svc)
{
	static const char *const hooks[] = { "prerouting", "input" };
	const struct rule_packet p = {
		.af = svc->id.af, .proto = svc->id.proto,
		.daddr = &svc->id.addr, .dport = svc->id.port, .first = true,
	};
	const char *chain;
	size_t i;

	if (ruleset_fate(rules, "nat", hooks[0], &p, &chain) == FATE_REWRITE) {
		report_add(r, SEVERITY_ERROR, svc_text(&svc->id),
			   "nftables' chain %s changes the address first",
			   chain);
		report_cure(r, "leave this address and port out of that rule");
		return false;
	}
	for (i = 0; i < 2; i++) {
		if (ruleset_fate(rules, "filter", hooks[i], &p, &chain) != FATE_DROP)
			continue;
		report_add(r, SEVERITY_ERROR, svc_text(&svc->id),
			   "nftables' chain %s drops requests of new clients",
			   chain);
		report_cure(r, "let this address and port in there");
		return false;
	}
	return true;
}

/* Replies to NAT are forwarded, with the server's address until the director has
 * written its own.
 */
static void check_reply(const json_t *rules, struct report *r,
			const struct service *svc)
{
	const char *chain;
	size_t i;

	for (i = 0; i < svc->nservers; i++) {
		const struct server *srv = &svc->servers[i];
		const struct rule_packet p = {
			.af = srv->af, .proto = svc->id.proto,
			.saddr = &srv->addr, .sport = srv->port,
		};

		if ((srv->forward & IP_VS_CONN_F_FWD_MASK) != IP_VS_CONN_F_MASQ ||
		    ruleset_fate(rules, "filter", "forward", &p, &chain) != FATE_DROP)
			continue;
		report_add(r, SEVERITY_ERROR, exam_server_text(svc, srv),
			   "nftables' chain %s drops its replies", chain);
		report_cure(r, "let packets from this address and port through there");
		return;
	}
}

void check_firewall(const struct exam *e, struct report *r)
{
	const char *why;
	json_t *rules;
	size_t i;

	if (!e->list.n)
		return;
	rules = ruleset_read(&why);
	if (!rules) {
		report_unknown(r, "%s", why);
		return;
	}
	for (i = 0; i < e->list.n && i < SERVICES_MAX; i++)
		if (!e->list.v[i].id.fwmark &&
		    request_passes(rules, r, &e->list.v[i]))
			check_reply(rules, r, &e->list.v[i]);
	if (e->list.n > SERVICES_MAX && json_array_size(rules) > 1)
		report_unknown(r, "only the first %d services were compared with nftables' rules",
			       SERVICES_MAX);
	json_decref(rules);
}

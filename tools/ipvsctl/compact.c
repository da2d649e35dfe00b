// SPDX-License-Identifier: GPL-2.0
/* Most services have few settings. Their text is written at once: a tree of each was two
 * thirds of apply's instructions.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <linux/ip_vs.h>

#include "compact.h"
#include "model.h"
#include "view.h"

/* Is this all that print_server() writes? */
static bool server_is_plain(const struct server *srv)
{
	uint32_t method = srv->forward & IP_VS_CONN_F_FWD_MASK;

	return (method == IP_VS_CONN_F_MASQ ||
		method == IP_VS_CONN_F_DROUTE) && !srv->drain.known;
}

/* Is this all that compact_print() writes? The name of a scheduler comes from a file. */
static bool service_is_plain(const struct service *svc)
{
	static const uint32_t settings = IP_VS_SVC_F_PERSISTENT |
					 IP_VS_SVC_F_ONEPACKET |
					 IP_VS_SVC_F_SCHED1 |
					 IP_VS_SVC_F_SCHED2 |
					 IP_VS_SVC_F_SCHED3;
	size_t i;

	if (svc->flags & settings || svc->pe[0] || svc->noptions ||
	    !policy_is_default(&svc->policy) ||
	    svc->scheduler[strspn(svc->scheduler,
				  "abcdefghijklmnopqrstuvwxyz0123456789_-")])
		return false;
	for (i = 0; i < svc->nservers; i++)
		if (!server_is_plain(&svc->servers[i]))
			return false;
	return true;
}

static void print_server(FILE *f, const struct server *srv)
{
	fprintf(f, "{\"id\":\"%s\",\"forward\":\"%s\",\"weight\":%u",
		ip_port_text(srv->af, &srv->addr, srv->port),
		forward_name(srv->forward & IP_VS_CONN_F_FWD_MASK),
		srv->weight);
	if (srv->max_conns)
		fprintf(f, ",\"max_conns\":%u", srv->max_conns);
	if (srv->min_conns)
		fprintf(f, ",\"min_conns\":%u", srv->min_conns);
	fputc('}', f);
}

void compact_print(FILE *f, const struct service *svc)
{
	const char *sep = "";
	json_t *tree;
	size_t i;

	if (!service_is_plain(svc)) {
		tree = service_json(svc, JSON_EXACT);
		json_dumpf(tree, f, JSON_COMPACT);
		json_decref(tree);
		return;
	}
	fprintf(f, "{\"id\":\"%s\",\"scheduler\":\"%s\",\"servers\":[",
		svc_word(&svc->id), svc->scheduler);
	for (i = 0; i < svc->nservers; i++, sep = ",\n") {
		fputs(sep, f);
		print_server(f, &svc->servers[i]);
	}
	fputs("]}", f);
}

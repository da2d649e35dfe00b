// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "describe.h"
#include "err.h"
#include "model.h"
#include "optword.h"
#include "rules_print.h"

static void print_ident(char verb, const struct svc_id *id)
{
	const char *how = "--sctp-service";

	if (id->fwmark) {
		printf("-%c -f %u%s", verb, id->fwmark,
		       id->af == AF_INET6 ? " -6" : "");
		return;
	}
	if (id->proto == IPPROTO_TCP)
		how = "-t";
	else if (id->proto == IPPROTO_UDP)
		how = "-u";
	printf("-%c %s %s", verb, how,
	       ip_port_text(id->af, &id->addr, id->port));
}

static void print_flags(const struct service *svc)
{
	const char *sep = " -b ";
	int i;

	for (i = 0; i < 3; i++) {
		uint32_t bit = (uint32_t)IP_VS_SVC_F_SCHED1 << i;
		bool hash = i < 2 && (!strcmp(svc->scheduler, "sh") ||
				      !strcmp(svc->scheduler, "mh"));

		if (!(svc->flags & bit))
			continue;
		if (hash)
			printf("%s%s-%s", sep, svc->scheduler,
			       i ? "port" : "fallback");
		else
			printf("%sflag-%d", sep, i + 1);
		sep = ",";
	}
}

/* ipvsadm has neither these settings nor comments, and stops at such a line. So
 * these lines come last, after everything that it can read.
 */
static void print_own(const struct service *svc)
{
	size_t i;

	if (svc->noptions) {
		printf("#ipvsctl option %s", svc_text(&svc->id));
		for (i = 0; i < svc->noptions; i++)
			printf(" %s %s", svc->options[i].name,
			       option_word(&svc->options[i]));
		putchar('\n');
	}
	if (!policy_is_default(&svc->policy))
		printf("#ipvsctl service %s %s\n", svc_text(&svc->id),
		       policy_text(&svc->policy));
}

static void print_service_rule(const struct service *svc)
{
	char mask[INET_ADDRSTRLEN];

	print_ident('A', &svc->id);
	printf(" -s %s", svc->scheduler);
	if (svc->flags & IP_VS_SVC_F_PERSISTENT) {
		printf(" -p %u", svc->timeout);
		if (svc->netmask != netmask_full(svc->id.af)) {
			if (svc->id.af == AF_INET6)
				snprintf(mask, sizeof(mask), "%u", svc->netmask);
			else
				inet_ntop(AF_INET, &svc->netmask, mask,
					  sizeof(mask));
			printf(" -M %s", mask);
		}
	}
	if (svc->pe[0])
		printf(" --pe %s", svc->pe);
	print_flags(svc);
	if (svc->flags & IP_VS_SVC_F_ONEPACKET)
		fputs(" -o", stdout);
	putchar('\n');
}

static void print_tunnel(const struct server *srv)
{
	const char *type = tun_type_name(srv->tun_type);

	printf(" --tun-type %s", type ? type : "?");
	if (srv->tun_type == IP_VS_CONN_F_TUNNEL_TYPE_GUE)
		printf(" --tun-port %u", srv->tun_port);
	if (srv->tun_type == IP_VS_CONN_F_TUNNEL_TYPE_IPIP)
		return;
	if (srv->tun_flags & IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM)
		fputs(" --tun-remcsum", stdout);
	else if (srv->tun_flags & IP_VS_TUNNEL_ENCAP_FLAG_CSUM)
		fputs(" --tun-csum", stdout);
	else
		fputs(" --tun-nocsum", stdout);
}

/* Unlike ipvsadm -S, this writes the thresholds, too: -x and -y. */
static void print_server_rule(const struct service *svc,
			      const struct server *srv)
{
	uint32_t method = srv->forward & IP_VS_CONN_F_FWD_MASK;

	if (method == IP_VS_CONN_F_LOCALNODE || method >= IP_VS_CONN_F_BYPASS)
		note("ipvsctl: %s: server %s: ipvsadm has no option for method %s; saved as -m",
		     svc_text(&svc->id),
		     ip_port_text(srv->af, &srv->addr, srv->port),
		     describe_forward(srv));
	print_ident('a', &svc->id);
	printf(" -r %s -%c -w %u",
	       ip_port_text(srv->af, &srv->addr, srv->port),
	       method == IP_VS_CONN_F_TUNNEL ? 'i' :
	       method == IP_VS_CONN_F_DROUTE ? 'g' : 'm', srv->weight);
	if (srv->max_conns)
		printf(" -x %u", srv->max_conns);
	if (srv->min_conns)
		printf(" -y %u", srv->min_conns);
	if (method == IP_VS_CONN_F_TUNNEL)
		print_tunnel(srv);
	putchar('\n');
}

int rules_print(const struct service_list *list)
{
	size_t i, j;

	for (i = 0; i < list->n; i++) {
		if (svc_is_range(&list->v[i].id)) {
			note("ipvsctl: %s: ipvsadm has no ranges: left out",
			     svc_text(&list->v[i].id));
			continue;
		}
		print_service_rule(&list->v[i]);
		for (j = 0; j < list->v[i].nservers; j++)
			print_server_rule(&list->v[i], &list->v[i].servers[j]);
	}
	for (i = 0; i < list->n; i++)
		if (!svc_is_range(&list->v[i].id))
			print_own(&list->v[i]);
	return RC_OK;
}

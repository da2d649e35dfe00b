// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "backend.h"
#include "complete_values.h"
#include "conn_filter.h"
#include "kern.h"
#include "kern_l4lb.h"
#include "kern_peer.h"
#include "model.h"
#include "scheduler_list.h"
#include "wire.h"

/* Asking for a netlink family that is not there makes the kernel load a module. */
static bool can_ask(void)
{
	return (module_loaded("l4lb") || module_loaded("ip_vs")) && !wire_open();
}

static const char *previous(const struct values_line *line)
{
	return line->count ? line->word[line->count - 1] : "";
}

static bool read_services(struct service_list *list, bool servers)
{
	return can_ask() && !kern_services(list, servers);
}

static void services(const struct values_line *line)
{
	struct service_list list = { 0 };
	size_t i;

	if (read_services(&list, false))
		for (i = 0; i < list.n; i++)
			line->value(svc_word(&list.v[i].id),
				    list.v[i].scheduler, line->arg);
	service_list_free(&list);
}

/* After the name of a protocol. */
static void endpoints(const struct values_line *line)
{
	struct service_list list = { 0 };
	size_t i;

	if (read_services(&list, false))
		for (i = 0; i < list.n; i++) {
			const struct svc_id *id = &list.v[i].id;

			if (!id->fwmark &&
			    !strcmp(proto_name(id->proto), previous(line)))
				line->value(vip_text(id),
					    list.v[i].scheduler, line->arg);
		}
	service_list_free(&list);
}

static void marks(const struct values_line *line)
{
	struct service_list list = { 0 };
	char text[16];
	size_t i;

	if (!strcmp(previous(line), "fwmark") && read_services(&list, false))
		for (i = 0; i < list.n; i++) {
			snprintf(text, sizeof(text), "%u", list.v[i].id.fwmark);
			if (list.v[i].id.fwmark)
				line->value(text, list.v[i].scheduler, line->arg);
		}
	service_list_free(&list);
}

/* Is @id in the line, in one word or in several? */
static bool is_named(const struct svc_id *id, const struct values_line *line)
{
	char text[128];
	int i;

	for (i = 0; i < line->count; i++) {
		const char *next = i + 1 < line->count ? line->word[i + 1] : "";
		bool inet6 = i + 2 < line->count &&
			     !strcmp(line->word[i + 2], "inet6");

		snprintf(text, sizeof(text), "%s %s%s", line->word[i], next,
			 inet6 ? " inet6" : "");
		if (!strcmp(line->word[i], svc_word(id)) ||
		    !strcmp(text, svc_text(id)))
			return true;
	}
	return false;
}

static void servers_of(const struct service *svc, const struct values_line *line)
{
	size_t i;

	for (i = 0; i < svc->nservers; i++)
		line->value(ip_port_text(svc->servers[i].af, &svc->servers[i].addr,
					 svc->servers[i].port), NULL, line->arg);
}

/* Of the service that the line names; else of all. */
static void servers(const struct values_line *line)
{
	struct service_list list = { 0 };
	struct service svc = { 0 };
	size_t i;

	if (!read_services(&list, false))
		return;
	for (i = 0; i < list.n && !is_named(&list.v[i].id, line); i++)
		;
	if (i < list.n) {
		if (!kern_service(&list.v[i].id, &svc, true))
			servers_of(&svc, line);
		service_free(&svc);
		service_list_free(&list);
		return;
	}
	service_list_free(&list);
	if (read_services(&list, true))
		for (i = 0; i < list.n; i++)
			servers_of(&list.v[i], line);
	service_list_free(&list);
}

static void vips(const struct values_line *line)
{
	struct service_list list = { 0 };
	size_t i;

	if (read_services(&list, false))
		for (i = 0; i < list.n; i++)
			if (!list.v[i].id.fwmark)
				line->value(ip_text(list.v[i].id.af,
						    &list.v[i].id.addr),
					    NULL, line->arg);
	service_list_free(&list);
}

static void addresses(const struct values_line *line)
{
	static const char *const after[] = { "delete", "resync", "verify", "peer" };
	struct sync_peer list[L4LB_PEERS_MAX];
	size_t k;
	int i, n;

	if (!strcmp(previous(line), "vip"))
		vips(line);
	for (k = 0; k < ARRAY_SIZE(after) && strcmp(previous(line), after[k]); k++)
		;
	n = k < ARRAY_SIZE(after) && can_ask() ? kern_peers(list) : 0;
	for (i = 0; i < n; i++)
		line->value(ip_text(list[i].af, &list[i].addr), NULL, line->arg);
}

static void schedulers(const struct values_line *line)
{
	struct sched_list list;
	int i;

	scheduler_list_read(&list);
	for (i = 0; i < list.n; i++)
		line->value(list.name[i], NULL, line->arg);
}

/* Of the schedulers that are loaded. */
static void scheduler_options(const struct values_line *line)
{
	struct sched_infos infos = { 0 };
	unsigned int i, k;

	if (can_ask() && !kern_schedulers(&infos))
		for (i = 0; i < infos.n; i++)
			for (k = 0; k < infos.v[i].n; k++)
				line->value(infos.v[i].options[k].name,
					    infos.v[i].options[k].what, line->arg);
	free(infos.v);
}

static void interfaces(const struct values_line *line)
{
	struct if_nameindex *list = wire_enter_netns() ? NULL : if_nameindex(), *p;

	for (p = list; p && p->if_name; p++)
		line->value(p->if_name, NULL, line->arg);
	if (list)
		if_freenameindex(list);
}

static void namespaces(const struct values_line *line)
{
	DIR *dir = opendir("/run/netns");
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			line->value(d->d_name, NULL, line->arg);
	if (dir)
		closedir(dir);
}

static void states(const struct values_line *line)
{
	int i;

	for (i = 0; conn_states[i]; i++)
		line->value(conn_states[i], NULL, line->arg);
}

static void flags(const struct values_line *line)
{
	static const char *const known[] = { "fallback", "port", "flag-1", "flag-2",
					     "flag-3", "none" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		line->value(known[i], NULL, line->arg);
}

static void engines(const struct values_line *line)
{
	line->value("none", NULL, line->arg);
}

void values_each(const char *name, size_t len, const struct values_line *line)
{
	static const struct {
		const char *name;
		void (*each)(const struct values_line *line);
	} kinds[] = {
		{ "SERVICE", services }, { "ENDPOINT", endpoints }, { "N", marks },
		{ "SRV", servers }, { "ADDR", addresses }, { "SCHED", schedulers },
		{ "SCHEDS", schedulers },
		{ "OPTION", scheduler_options }, { "IF", interfaces },
		{ "NS", namespaces }, { "STATE", states }, { "FLAGS", flags },
		{ "NAME", engines },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == len && !strncmp(kinds[i].name, name, len))
			kinds[i].each(line);
}

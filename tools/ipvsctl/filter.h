/* SPDX-License-Identifier: GPL-2.0 */
/* Which services a listing shows, and in which order. */
#ifndef IPVSCTL_FILTER_H
#define IPVSCTL_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "ident.h"

struct args;
struct service_list;

struct filter {
	bool by_id, by_proto, by_vip, by_port, by_server, down, overloaded;
	struct svc_id id;
	struct srv_id server;
	uint16_t proto, port, vip_af;
	struct ip vip;
	uint32_t vip_len;
	const char *scheduler;
	const char *sort;
	bool config;		/* counters are not needed */
	bool alone;		/* servers are not needed */
};

/* Reads filter words to the end; with @server, an ID may be followed by a
 * real server.
 */
int filter_parse(struct args *a, struct filter *f, bool server);

/* Fills @list with what passes; fails if a service named by ID is missing. */
int filter_read(const struct filter *f, struct service_list *list);

#endif

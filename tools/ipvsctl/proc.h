/* SPDX-License-Identifier: GPL-2.0 */
/* Files in /proc/net that in-tree ip_vs has no netlink command for. */
#ifndef IPVSCTL_PROC_H
#define IPVSCTL_PROC_H

#include <stdbool.h>
#include <stdint.h>

#include "ident.h"

struct counters;

struct conn {
	uint16_t af, server_af;
	uint16_t proto;			/* 0 with a fwmark template */
	uint32_t fwmark;
	struct ip client, vip, server;
	uint16_t client_port, vport, server_port;
	char state[24];
	uint32_t expires;		/* seconds */
	char pe[20], pe_data[256];
	bool template;			/* binds a persistent client */
	bool known;			/* the rest is set: read by netlink */
	bool fast_client, fast_server;	/* whose packets take the fast path */
	uint32_t mark;			/* of its service, if by mark */
	uint32_t forward;		/* IP_VS_CONN_F_MASQ and so on */
	uint32_t holders;		/* of a template: its connections */
	bool has_local;			/* with snat: what its server sees */
	struct ip local;
	uint16_t local_port;
};

/* Calls @fn for each connection until it returns false. Fails, and says why,
 * if the file cannot be read.
 */
int proc_conns(bool (*fn)(const struct conn *c, void *arg), void *arg);

/* Totals and rates of the namespace. */
int proc_totals(struct counters *total);

/* A counter of /proc/net/l4lb. */
struct proc_counter {
	char name[32];
	uint64_t value;
};

/* Calls @fn for each of them, in the file's order: reasons of drops, from "fast"
 * on the fast path, then synchronisation once that has begun. In-tree ip_vs has
 * none.
 */
int proc_counters(void (*fn)(const struct proc_counter *c, void *arg),
		  void *arg);

/* Is a counter of that name one of the fast path's? */
bool proc_is_fast_path(const char *name);

/* The setting net.ipv4.vs.@name; false if the module does not have it. */
bool proc_setting(const char *name, uint64_t *value);

/* Calls @fn for each CPU ("0") and for the sum ("all"). */
int proc_percpu(void (*fn)(const char *cpu, const struct counters *c,
			   void *arg), void *arg);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* Reads and changes the kernel's configuration: the IPVS commands as functions.
 *
 * kern_*() returns 0 or -errno and records no failure; callers do that with
 * refuse_*() of refuse.h.
 */
#ifndef IPVSCTL_KERN_H
#define IPVSCTL_KERN_H

#include <stdbool.h>
#include <stdint.h>

struct svc_id;
struct service;
struct server;
struct service_list;

struct kern_timeouts {
	uint32_t tcp, tcp_fin, udp;	/* seconds */
};

struct kern_info {
	uint32_t version;		/* 0x010201 is 1.2.1 */
	uint32_t table_size;
};

/* All services, sorted; with their servers if @servers. */
int kern_services(struct service_list *list, bool servers);

/* The same with servers; l4lb leaves the counters out, which is faster. */
int kern_config(struct service_list *list);

/* One service; -ESRCH if it is not there. */
int kern_service(const struct svc_id *id, struct service *svc, bool servers);

/* Will kern_announce() print? */
bool kern_announces(void);

/* Prints a step for --dry-run or -v; true with --dry-run: do not take it. */
bool kern_announce(const char *verb, const char *what);

/* The writing calls: with --dry-run they print the change and do nothing. */
int kern_service_add(const struct service *svc);	/* with its options and policy */
int kern_service_set(const struct service *svc);	/* likewise */
int kern_l4lb_set(const struct service *svc);	/* options or policy only */
int kern_service_delete(const struct svc_id *id);
int kern_server_add(const struct svc_id *id, const struct server *srv);
int kern_server_set(const struct svc_id *id, const struct server *srv);
int kern_server_delete(const struct svc_id *id, const struct server *srv);
int kern_flush(void);
int kern_zero(const struct svc_id *id);		/* NULL: everything */

int kern_timeouts(struct kern_timeouts *t);
int kern_timeouts_set(const struct kern_timeouts *t);	/* 0 keeps */
int kern_info(struct kern_info *info);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* Drains: the family L4LB, which in-tree ip_vs lacks. */
#ifndef IPVSCTL_KERN_DRAIN_H
#define IPVSCTL_KERN_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct server;
struct service_list;
struct svc_id;

/* False if the kernel keeps no weights of drained servers. */
bool kern_has_drains(void);

/* These return 0 or -errno; with --dry-run those that write print the step. */

/* @secs: 0 for no deadline; @then: enum l4lb_then. */
int kern_drain(const struct svc_id *id, const struct server *srv,
	       uint32_t secs, uint32_t then);
/* What undrain is to restore, for a server with weight 0. */
int kern_drain_weight(const struct svc_id *id, const struct server *srv,
		      uint32_t weight);
/* Fills in server.drain of those servers in @list that have one. */
int kern_drains(struct service_list *list);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* How long real servers take: the family L4LB, which in-tree ip_vs lacks. */
#ifndef IPVSCTL_KERN_LATENCY_H
#define IPVSCTL_KERN_LATENCY_H

struct service_list;
struct svc_id;

/* Fills in server.latency in those services of @list that measure; @only: the list has
 * just this service, or NULL. No request is sent if none does. Returns 0 or -errno.
 */
int kern_latency(struct service_list *list, const struct svc_id *only);

#endif

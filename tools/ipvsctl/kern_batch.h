/* SPDX-License-Identifier: GPL-2.0 */
/* All services and servers in one command: SET_SERVICES and GET_SERVICES of the
 * family L4LB, which in-tree ip_vs lacks.
 */
#ifndef IPVSCTL_KERN_BATCH_H
#define IPVSCTL_KERN_BATCH_H

#include <stdbool.h>

#include "../../kernel/l4lb.h"

struct batch;
struct kern_timeouts;
struct server;
struct service;
struct service_list;
struct svc_id;

/* Its services are added or changed; CHANGE: they must exist. */
struct batch *batch_new(enum l4lb_set_mode mode);
void batch_free(struct batch *b);

/* Add a service's settings, or one of its servers; batch_server() adds the
 * settings, too, if need be. @svc and @srv must be valid until batch_send().
 */
void batch_service(struct batch *b, const struct service *svc);
void batch_server(struct batch *b, const struct service *svc,
		  const struct server *srv);

/* The same as batch_service(), and the service loses all servers that the batch does
 * not name.
 */
void batch_service_exact(struct batch *b, const struct service *svc);

/* The service is removed. */
void batch_remove(struct batch *b, const struct service *svc);

/* 0 keeps. */
void batch_timeouts(struct batch *b, const struct kern_timeouts *t);

/* Applies the batch whole or not at all. Returns 0, or -errno with the
 * refused service and server in *svc and *srv, or NULL.
 */
int batch_send(struct batch *b, const struct service **svc,
	       const struct server **srv);

/* All services with their servers, with counters if @live; -EINTR if something
 * changed meanwhile.
 */
int batch_list(struct service_list *list, bool live);

/* Only those with a range, without counters; or the one with the range of @id, with all that
 * is known of it, or none.
 */
int batch_list_ranges(struct service_list *list);
int batch_read_range(const struct svc_id *id, struct service_list *list);

#endif

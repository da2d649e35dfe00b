/* SPDX-License-Identifier: GPL-2.0 */
/* Services and their servers all at once: SET_SERVICES and GET_SERVICES of the
 * family L4LB, which in-tree ip_vs lacks.
 */
#ifndef IPVSCTL_KERN_BATCH_H
#define IPVSCTL_KERN_BATCH_H

#include <stdbool.h>

struct batch;
struct server;
struct service;
struct service_list;

struct batch *batch_new(void);
void batch_free(struct batch *b);

/* The service's settings, and a server of it: both must stay until the batch is
 * sent. A server's service goes before it by itself.
 */
void batch_service(struct batch *b, const struct service *svc);
void batch_server(struct batch *b, const struct service *svc,
		  const struct server *srv);

/* All of it takes effect, or nothing: then *svc and *srv are what was wrong, or
 * NULL. Returns 0 or -errno.
 */
int batch_send(struct batch *b, const struct service **svc,
	       const struct server **srv);

/* All services with their servers, with figures if @live; -EINTR if there was
 * a change meanwhile.
 */
int batch_list(struct service_list *list, bool live);

#endif

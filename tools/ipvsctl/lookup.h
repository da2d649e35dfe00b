/* SPDX-License-Identifier: GPL-2.0 */
/* Services and servers that a command names, read from the kernel. A failure's
 * message says what is missing.
 */
#ifndef IPVSCTL_LOOKUP_H
#define IPVSCTL_LOOKUP_H

#include <stdbool.h>

struct args;
struct server;
struct service;
struct srv_id;
struct svc_id;

/* Reads a service, with its servers if @servers. */
int service_lookup(const struct svc_id *id, struct service *svc, bool servers);

/* Parses [to] ID SRV. */
int server_words(struct args *a, struct svc_id *id, struct srv_id *name);

/* Reads the server @name of the service @id. */
int server_lookup(const struct svc_id *id, const struct srv_id *name,
		  struct server *srv);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* What the words of a command name, as it is in the kernel; a failure says what
 * is missing.
 */
#ifndef IPVSCTL_LOOKUP_H
#define IPVSCTL_LOOKUP_H

#include <stdbool.h>

struct args;
struct server;
struct service;
struct srv_id;
struct svc_id;

/* Reads a service, or says why not. */
int service_lookup(const struct svc_id *id, struct service *svc, bool servers);

/* [to] ID SRV */
int server_words(struct args *a, struct svc_id *id, struct srv_id *name);

/* Reads that server from the kernel; says so if it is not there. */
int server_lookup(const struct svc_id *id, const struct srv_id *name,
		  struct server *srv);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* The options of a service or server in the words of the command line. */
#ifndef IPVSCTL_DESCRIBE_H
#define IPVSCTL_DESCRIBE_H

#include <stddef.h>
#include <stdint.h>

struct service;
struct server;
struct svc_id;
struct kern_timeouts;

/* Each returns a static buffer of its own. */
const char *describe_service(const struct service *svc);
const char *describe_server(const struct svc_id *id, const struct server *srv);
const char *describe_timeouts(const struct kern_timeouts *t);

/* "persistent 300 mask 24 ops": all but the scheduler; "" if there is none. */
const char *describe_options(const struct service *svc);

/* "tun type gue port 6080 csum" */
const char *describe_forward(const struct server *srv);

/* "fallback,port" or "flag-1"; "" if there is none. */
const char *describe_flags(const struct service *svc);

/* "24", or dotted for a mask with holes. */
const char *describe_mask(uint16_t af, uint32_t netmask);

/* Server: ok, draining, overloaded. Service: ok, down, no servers. */
const char *server_state(const struct server *srv);
const char *service_state(const struct service *svc);

#endif

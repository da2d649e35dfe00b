/* SPDX-License-Identifier: GPL-2.0 */
/* Turns a kernel's "no" into a sentence that says what to do about it. */
#ifndef IPVSCTL_REFUSE_H
#define IPVSCTL_REFUSE_H

struct svc_id;
struct service;
struct server;

/* Each records the failure and returns the exit code. @err is -errno. */

/* Anything that is about no service in particular; @what in a few words. */
int refuse(int err, const char *object, const char *what);

/* Adding or changing a service. */
int refuse_service(int err, const struct service *svc);

/* Adding, changing or deleting a real server. */
int refuse_server(int err, const struct svc_id *id, const struct server *srv);

/* No such service, naming the nearest one. */
int missing_service(const struct svc_id *id);

/* No such server of a service that was read, naming those it has. */
int missing_server(const struct service *svc, const struct server *srv);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* Turns a refusal of the kernel into a message that says what to do. */
#ifndef IPVSCTL_REFUSE_H
#define IPVSCTL_REFUSE_H

struct svc_id;
struct service;
struct server;

/* Each records the failure and returns the exit code. @err is -errno. */

/* About no service in particular; @what names the step in a few words. */
int refuse(int err, const char *object, const char *what);

/* Adding or changing a service. */
int refuse_service(int err, const struct service *svc);

/* Adding, changing or deleting a real server. */
int refuse_server(int err, const struct svc_id *id, const struct server *srv);

/* There is no such service; suggests the one with the most similar name. */
int missing_service(const struct svc_id *id);

/* The service @svc, which was read, has no such server; lists those it has. */
int missing_server(const struct service *svc, const struct server *srv);

#endif

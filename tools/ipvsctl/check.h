/* SPDX-License-Identifier: GPL-2.0 */
/* Refuses settings that the kernel accepts but that cannot be intended. */
#ifndef IPVSCTL_CHECK_H
#define IPVSCTL_CHECK_H

struct server;
struct service;

int service_check(const struct service *svc);
int server_check(const struct service *svc, const struct server *srv);

#endif

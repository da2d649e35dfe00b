/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel would take but no one can have meant: refused. */
#ifndef IPVSCTL_CHECK_H
#define IPVSCTL_CHECK_H

struct server;
struct service;

int service_check(const struct service *svc);
int server_check(const struct service *svc, const struct server *srv);

#endif

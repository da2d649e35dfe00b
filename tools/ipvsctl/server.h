/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IPVSCTL_SERVER_H
#define IPVSCTL_SERVER_H

struct args;
struct server;
struct srv_id;
struct svc_id;

/* [to] ID SRV */
int server_words(struct args *a, struct svc_id *id, struct srv_id *name);

/* Reads that server from the kernel; says so if it is not there. */
int server_lookup(const struct svc_id *id, const struct srv_id *name,
		  struct server *srv);

#endif

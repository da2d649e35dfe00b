/* SPDX-License-Identifier: GPL-2.0 */
/* Taking a server out of service without hurting its clients. */
#ifndef IPVSCTL_DRAIN_H
#define IPVSCTL_DRAIN_H

#include <stdbool.h>

struct args;
struct server;
struct svc_id;

int server_drain(struct args *a);
int server_undrain(struct args *a);

/* Is any weight noted? */
bool drain_any(void);
/* The server is gone, new, or has a weight: drop the note of its old one. */
void drain_forget(const struct svc_id *id, const struct server *srv);

#endif

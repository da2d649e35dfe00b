/* SPDX-License-Identifier: GPL-2.0 */
/* A virtual service of a configuration file. */
#ifndef IPVSCTL_DECLARE_SERVICE_H
#define IPVSCTL_DECLARE_SERVICE_H

struct node;
struct service;
struct tree;

/* Reads @map into @svc, without its servers. @defaults: a map, or NULL. */
int declare_service(const struct tree *t, const struct node *map,
		    const struct node *defaults, struct service *svc);

#endif

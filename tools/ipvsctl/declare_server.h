/* SPDX-License-Identifier: GPL-2.0 */
/* A real server of a configuration file: one line, or keys and values. */
#ifndef IPVSCTL_DECLARE_SERVER_H
#define IPVSCTL_DECLARE_SERVER_H

struct node;
struct server;
struct service;
struct tree;

/* Reads the keys of @map that are options of a server. */
int declare_server_options(const struct tree *t, const struct node *map,
			   const struct service *svc, struct server *srv);

/* Reads @node into @srv. @defaults: a map of options, or NULL. */
int declare_server(const struct tree *t, const struct node *node,
		   const struct node *defaults, const struct service *svc,
		   struct server *srv);

#endif

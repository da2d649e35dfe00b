/* SPDX-License-Identifier: GPL-2.0 */
/* Services as a tree on a terminal or as JSON, whole or filtered. */
#ifndef IPVSCTL_VIEW_H
#define IPVSCTL_VIEW_H

#include <stdbool.h>

#include <jansson.h>

struct args;
struct server;
struct service;
struct service_list;

enum json_detail { JSON_CONFIG, JSON_EXACT, JSON_LIVE };

/* The JSON of one service. With JSON_CONFIG only what can be configured; with JSON_EXACT
 * also the numbers of programs, which are others after a boot.
 */
json_t *service_json(const struct service *svc, enum json_detail detail);

/* Prints the services that pass the filter words in @a. */
int view_services(struct args *a);

/* The same; after a service, the words may name one server of it. */
int view_servers(struct args *a);

#endif

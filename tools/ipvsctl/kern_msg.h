/* SPDX-License-Identifier: GPL-2.0 */
/* Services and real servers in messages: nests that both families have. */
#ifndef IPVSCTL_KERN_MSG_H
#define IPVSCTL_KERN_MSG_H

#include <stdint.h>

struct nl_msg;
struct nlattr;
struct server;
struct service;
struct svc_id;

/* Adds the attributes that name a service. */
void kern_put_ident(struct nl_msg *msg, const struct svc_id *id);
void kern_get_service(struct nlattr **tb, struct service *svc);
void kern_get_server(struct nlattr **tb, const struct service *svc,
		     struct server *srv);

/* 0 if @attr is NULL. */
uint32_t kern_get_u32(struct nlattr *attr);

#endif

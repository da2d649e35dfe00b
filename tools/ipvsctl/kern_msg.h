/* SPDX-License-Identifier: GPL-2.0 */
/* Services and real servers in messages: nests that both families have. */
#ifndef IPVSCTL_KERN_MSG_H
#define IPVSCTL_KERN_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "../../kernel/l4lb.h"

struct nl_msg;
struct nlattr;
struct server;
struct service;
struct svc_id;

/* Of the attributes of a service, in either family. */
enum { SVC_ATTR_MAX = L4LB_SVC_ATTR_RANGE };

/* Adds the attributes that name a service. */
void kern_put_ident(struct nl_msg *msg, const struct svc_id *id);
void kern_get_service(struct nlattr **tb, struct service *svc);
void kern_get_server(struct nlattr **tb, const struct service *svc,
		     struct server *srv);

/* 0 if @attr is NULL. */
uint32_t kern_get_u32(struct nlattr *attr);
uint16_t kern_get_u16(struct nlattr *attr);
/* "" if @attr is NULL. */
void kern_get_string(struct nlattr *attr, char *out, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* Connections, of which in-tree ip_vs has only the file that proc.h reads. */
#ifndef IPVSCTL_KERN_CONN_H
#define IPVSCTL_KERN_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "ident.h"

struct conn;

/* Which ones; those that have all of it. */
struct conn_filter {
	bool by_service, by_server, by_client, by_proto, template;
	struct svc_id service;
	struct srv_id server;
	struct ip client;
	uint16_t client_af, proto;
	uint32_t client_len;
	const char *state;
	uint16_t af;		/* 0: both */
	uint32_t limit;		/* 0: none */
};

/* Calls @fn for each connection that passes @f until it returns false; the
 * limit is the caller's. 0 or -errno: -EOPNOTSUPP where the kernel has no such
 * command, -EPERM for who may not use it; both before the first connection.
 */
int kern_conns(const struct conn_filter *f,
	       bool (*fn)(const struct conn *c, void *arg), void *arg);

#endif

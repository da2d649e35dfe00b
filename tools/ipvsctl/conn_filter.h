/* SPDX-License-Identifier: GPL-2.0 */
/* Which connections a command is about. */
#ifndef IPVSCTL_CONN_FILTER_H
#define IPVSCTL_CONN_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "ident.h"

struct args;
struct conn;

/* Names of states, as both lists have them; the last is NULL. */
extern const char *const conn_states[];

/* A connection passes if it meets all conditions that are set. */
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

/* Parses the next word of a filter, and its value. */
int conn_filter_word(struct args *a, struct conn_filter *f);
bool conn_passes(const struct conn_filter *f, const struct conn *c);

#endif

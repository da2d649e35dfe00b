/* SPDX-License-Identifier: GPL-2.0 */
/* Services and servers in the order of what they do. */
#ifndef IPVSCTL_RANKING_H
#define IPVSCTL_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rates.h"

struct server;
struct service;
struct snapshot;

enum rank_key { RANK_CONNS, RANK_PACKETS, RANK_BYTES, RANK_ACTIVE, RANK_NAME };

/* The word for a key, or NULL; the keys are counted from 0. */
const char *rank_word(enum rank_key key);

struct rank_by {
	enum rank_key key;
	bool reverse;
	bool servers;		/* services have their servers below them */
	char pattern[64];	/* part of a service's, server's or scheduler's name */
};

struct ranked {
	const struct service *svc;
	const struct server *srv;	/* NULL: the row of the service */
	struct rate rate;
	uint64_t active, inactive;
	/* 0 to 1: of all services, or of the service, by the key (by connections
	 * a second if that is the name).
	 */
	double share;
};

struct ranking {
	struct ranked *rows;
	size_t n;
	size_t services;	/* of them */
};

/* Arranges what passes @by->pattern. The rows are valid as long as @s. */
void rank(const struct snapshot *s, const struct rates *r,
	  const struct rank_by *by, struct ranking *out);
void rank_free(struct ranking *ranking);

#endif

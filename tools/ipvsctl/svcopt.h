/* SPDX-License-Identifier: GPL-2.0 */
/* The options of services and servers: words in, checked settings out.
 *
 * Parsing records which options were named, so that `change` can apply just
 * those to the kernel's settings. The check then looks at the whole result.
 */
#ifndef IPVSCTL_SVCOPT_H
#define IPVSCTL_SVCOPT_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

struct args;
struct svc_id;
struct srv_id;

struct svc_opts {
	unsigned int named;	/* SVC_* */
	char scheduler[16];
	char pe[17];
	uint32_t sched_flags;
	bool persistent, ops;
	uint32_t timeout;
	uint32_t netmask;
	struct svc_option options[SERVICE_OPTIONS_MAX];
	size_t noptions;
	struct policy_opts policy;
};

enum {
	SVC_SCHEDULER	= 1 << 0,
	SVC_FLAGS	= 1 << 1,
	SVC_PERSISTENT	= 1 << 2,
	SVC_MASK	= 1 << 3,
	SVC_PE		= 1 << 4,
	SVC_OPS		= 1 << 5,
	SVC_OPTION	= 1 << 6,
	SVC_POLICY	= 1 << 7,
};

struct srv_opts {
	unsigned int named;	/* SRV_* */
	uint32_t forward;
	uint32_t weight;
	uint32_t max_conns, min_conns;
	uint8_t tun_type;
	uint16_t tun_port;
	uint16_t tun_flags, tun_flags_named;
};

enum {
	SRV_FORWARD	= 1 << 0,
	SRV_WEIGHT	= 1 << 1,
	SRV_MAX		= 1 << 2,
	SRV_MIN		= 1 << 3,
	SRV_TUN_TYPE	= 1 << 4,
	SRV_TUN_PORT	= 1 << 5,
};

enum { PERSISTENT_DEFAULT = 300 };

/* Reads options until the words end or "server" comes. */
int svc_opts_parse(struct args *a, const struct svc_id *id,
		   struct svc_opts *o);
/* Reads options until the words end or, with @more, "server" comes. */
int srv_opts_parse(struct args *a, const struct svc_id *id,
		   struct srv_opts *o, bool more);

void service_defaults(struct service *svc, const struct svc_id *id);
void server_defaults(struct server *srv, const struct svc_id *id,
		     const struct srv_id *name);
void svc_opts_apply(struct service *svc, const struct svc_opts *o);
void srv_opts_apply(struct server *srv, const struct srv_opts *o);

/* "24", "/24" or "255.255.255.0" */
int parse_mask(const char *word, const struct svc_id *id, uint32_t *netmask);
int check_scheduler_name(const char *word, const char *object);

/* A persistence engine's name; "none" is none. */
int take_pe(const char *word, const char *object, char *pe, size_t size);

/* Parses a scheduler's option and adds it to @svc; fails if it is there. */
int option_named(struct service *svc, const char *name, const char *value);

#endif

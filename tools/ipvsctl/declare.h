/* SPDX-License-Identifier: GPL-2.0 */
/* The configuration file of apply, diff and check. The reader looks at all of it
 * before it returns; a message about a mistake has its line and column.
 */
#ifndef IPVSCTL_DECLARE_H
#define IPVSCTL_DECLARE_H

#include <stdbool.h>
#include <stddef.h>

#include "kern.h"
#include "model.h"
#include "xdp_set.h"

struct source;

enum {
	DECLARE_BYTES	= 8 << 20,
	DECLARE_SERVERS	= 65536,
	DECLARE_SCOPES	= 64,
	DECLARE_XDP	= 1024,		/* devices */
};

struct scope {
	uint16_t af;
	struct ip addr;
	uint32_t len;
};

struct declaration {
	struct service_list services;
	struct kern_timeouts timeouts;	/* 0: not in the file */
	struct xdp_names xdp;
	bool has_xdp;			/* the file says which devices have it */
	char owner[L4LB_OWNER_LEN];	/* of services that name none; or "" */
	struct scope scopes[DECLARE_SCOPES];
	size_t nscopes;			/* 0: every address */
};

/* Is it YAML, and not ipvsadm's rules or the JSON of save? */
bool declare_is_yaml(const char *text);

/* Returns an exit code; declaration_free() in any case. */
int declare_read(const struct source *s, struct declaration *d);
void declaration_free(struct declaration *d);

/* May --prune remove this service? */
bool declare_in_scope(const struct declaration *d, const struct svc_id *id);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* Connection synchronisation: its daemons in the kernel, by family IPVS. */
#ifndef IPVSCTL_KERN_SYNC_H
#define IPVSCTL_KERN_SYNC_H

#include <net/if.h>
#include <stdint.h>

#include "ident.h"

/* Roles are IP_VS_STATE_MASTER, which sends, and IP_VS_STATE_BACKUP. */
struct sync_daemon {
	uint32_t role;
	char dev[IF_NAMESIZE];
	uint32_t id;		/* 0 to 255 */
	uint32_t maxlen;	/* bytes; 0: the kernel's default */
	uint16_t af;		/* of the group; 0: the kernel's default */
	struct ip group;
	uint32_t port;		/* 0: the default */
	uint32_t ttl;		/* 0: the default */
};

enum { SYNC_DAEMONS_MAX = 2 };

/* Those that run: returns their number, or -errno. */
int kern_sync_list(struct sync_daemon list[SYNC_DAEMONS_MAX]);
/* 0 or -errno; with --dry-run they print the step and do nothing. */
int kern_sync_start(const struct sync_daemon *daemon);
int kern_sync_stop(uint32_t role);
/* Takes a start back after a refusal, which stays the last one. */
void kern_sync_undo(uint32_t role);

/* "send" or "receive" */
const char *sync_role_name(uint32_t role);

#endif

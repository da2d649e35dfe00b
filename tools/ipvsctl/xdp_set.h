/* SPDX-License-Identifier: GPL-2.0 */
/* The devices of a namespace that are to have XDP, beside those that have it. */
#ifndef IPVSCTL_XDP_SET_H
#define IPVSCTL_XDP_SET_H

#include <stdbool.h>
#include <stddef.h>

#include <net/if.h>

/* Names of devices, in no order. */
struct xdp_names {
	char (*v)[IF_NAMESIZE];
	size_t n;
};

/* @name: shorter than IF_NAMESIZE. */
void xdp_names_add(struct xdp_names *list, const char *name);
bool xdp_names_have(const struct xdp_names *list, const char *name);
void xdp_names_copy(struct xdp_names *to, const struct xdp_names *from);
void xdp_names_free(struct xdp_names *list);

/* What is to be attached, and what detached. */
struct xdp_change {
	struct xdp_names on, off;
};

/* From what is there to @want. Returns an exit code; xdp_change_free() in any case. */
int xdp_change_read(struct xdp_change *c, const struct xdp_names *want);
void xdp_change_free(struct xdp_change *c);
bool xdp_change_any(const struct xdp_change *c);

/* Attaches to all of @on, or to none. Returns an exit code. */
int xdp_change_begin(const struct xdp_change *c);
/* Takes that back. */
void xdp_change_abort(const struct xdp_change *c);
/* Detaches from @off; a note names a device that refuses. */
void xdp_change_end(const struct xdp_change *c);

/* Takes all of it back; false: a device has refused, as a message says. */
bool xdp_change_back(const struct xdp_change *c);

/* Are the devices as the change has left them? Returns an exit code. */
int xdp_change_holds(const struct xdp_change *c, bool *holds);

#endif

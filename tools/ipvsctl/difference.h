/* SPDX-License-Identifier: GPL-2.0 */
/* A plan in the form of diff -u. */
#ifndef IPVSCTL_DIFFERENCE_H
#define IPVSCTL_DIFFERENCE_H

#include <jansson.h>

struct plan;
struct plan_item;
struct service;
struct xdp_change;

struct difference {
	const struct service *head;	/* the service whose name was printed */
	json_t *list;			/* with -j, instead of lines */
};

void difference_line(struct difference *d, char sign, const char *indent,
		     const char *text);

void difference_xdp(struct difference *d, const struct xdp_change *c);

/* For plan_walk(), with a struct difference as its argument. */
int difference_see(struct plan *p, const struct plan_item *item, void *arg);

#endif

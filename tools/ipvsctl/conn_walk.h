/* SPDX-License-Identifier: GPL-2.0 */
/* Reads connections from whatever the kernel has. */
#ifndef IPVSCTL_CONN_WALK_H
#define IPVSCTL_CONN_WALK_H

#include <stdbool.h>

struct conn;
struct conn_filter;

/* Calls @fn for each connection that passes @filter, until it returns false; @fn
 * applies the limit. Returns an exit code, with the failure recorded.
 */
int conn_walk(const struct conn_filter *filter,
	      bool (*fn)(const struct conn *c, void *arg), void *arg);

#endif

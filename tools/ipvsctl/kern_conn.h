/* SPDX-License-Identifier: GPL-2.0 */
/* Connections by netlink; in-tree ip_vs has only the file that proc.h reads. */
#ifndef IPVSCTL_KERN_CONN_H
#define IPVSCTL_KERN_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "conn_filter.h"

struct conn;
struct nlattr;

/* Calls @fn for each connection that passes @f, until @fn returns false. @fn
 * applies f->limit. Returns 0 or -errno: -EOPNOTSUPP if the kernel lacks the
 * command, -EPERM if the user may not use it, both before the first call.
 */
int kern_conns(const struct conn_filter *f,
	       bool (*fn)(const struct conn *c, void *arg), void *arg);

/* Ends those that pass @f, all if it has no condition; with @reset both ends are
 * told, where the kernel knows the numbers. *count is their number. Returns 0 or
 * -errno: -EOPNOTSUPP if the kernel lacks the command.
 */
int kern_conns_kill(const struct conn_filter *f, bool reset, uint64_t *count);

/* From the attributes L4LB_CONN_ATTR_*. */
void kern_conn_take(struct nlattr **tb, struct conn *c);

#endif

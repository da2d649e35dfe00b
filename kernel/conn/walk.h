/* SPDX-License-Identifier: GPL-2.0 */
/* Listing all connections. */
#ifndef _L4LB_CONN_WALK_H
#define _L4LB_CONN_WALK_H

#include "conn/conn.h"

/* Jiffies it has left without packets. */
static inline u32 l4lb_conn_left(const struct l4lb_conn *conn)
{
	s64 left = (s64)READ_ONCE(conn->timeout) - l4lb_conn_idle(conn);

	return left > 0 ? left : 0;
}

/* Walk for listings (procfs, netlink), process context.  start and stop bracket
 * an RCU read section.  next returns NULL at the end; it skips reply slots and
 * expired connections.  Now and then it leaves RCU for a moment and may sleep:
 * connections that it returned before are then no longer valid.  back makes
 * next return its last connection of this section again.
 * A walk keeps its place between start/stop pairs and during a resize.  A whole
 * dump takes linear time and shows each connection once that exists throughout.
 */
struct l4lb_conn_walk;
struct l4lb_conn_walk *l4lb_conn_walk_open(struct l4lb_net *ln);
/* Begin again. */
void l4lb_conn_walk_rewind(struct l4lb_conn_walk *walk);
/* Connections and templates that the table has now, about. */
unsigned int l4lb_conn_walk_total(const struct l4lb_conn_walk *walk);
void l4lb_conn_walk_close(struct l4lb_conn_walk *walk);
void l4lb_conn_walk_start(struct l4lb_conn_walk *walk);
struct l4lb_conn *l4lb_conn_walk_next(struct l4lb_conn_walk *walk);
void l4lb_conn_walk_back(struct l4lb_conn_walk *walk);
void l4lb_conn_walk_stop(struct l4lb_conn_walk *walk);

#endif /* _L4LB_CONN_WALK_H */

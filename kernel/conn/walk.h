/* SPDX-License-Identifier: GPL-2.0 */
/* Listing all connections. */
#ifndef _L4LB_CONN_WALK_H
#define _L4LB_CONN_WALK_H

#include "conn/conn.h"

/* Walk for listings (procfs, netlink), process context: start/stop bracket a
 * read section that holds RCU; next returns NULL at the end, skips expired ones
 * and reply tuples.  Now and then next lets go of RCU for a moment, and may
 * sleep: what it returned before is gone then.  back: what it returned last, in
 * this section, comes again.
 * A walk survives between start/stop pairs, and the table's growing.  It is
 * linear over a whole dump and shows each connection that is there all the
 * time once.
 */
struct l4lb_conn_walk;
struct l4lb_conn_walk *l4lb_conn_walk_open(struct l4lb_net *ln);
void l4lb_conn_walk_close(struct l4lb_conn_walk *walk);
void l4lb_conn_walk_start(struct l4lb_conn_walk *walk);
struct l4lb_conn *l4lb_conn_walk_next(struct l4lb_conn_walk *walk);
void l4lb_conn_walk_back(struct l4lb_conn_walk *walk);
void l4lb_conn_walk_stop(struct l4lb_conn_walk *walk);

#endif /* _L4LB_CONN_WALK_H */

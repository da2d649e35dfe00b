/* SPDX-License-Identifier: GPL-2.0 */
/* What higher layers are told about connections. */
#ifndef _L4LB_CONN_WATCH_H
#define _L4LB_CONN_WATCH_H

#include <linux/jump_label.h>

#include "l4lb.h"

struct l4lb_conn;

/**
 * struct l4lb_conn_events - called by this layer
 * @expired: the time of a connection is over; it is about to be killed.  RCU
 * @living: the sweep has visited a connection that lives on.  RCU
 * @changed: a packet has changed the state of a connection, which is not dead.
 *	RCU, BH off, l4lb_conn_lock() held
 * @held: a template has got its first connection.  RCU, BH off
 * @ended: a connection is about to be killed before its time, and its flow gets no
 *	other one now.  RCU
 *
 * All but @expired only while %l4lb_conn_watched is on.
 */
struct l4lb_conn_events {
	void	(*expired)(struct l4lb_conn *conn);
	void	(*living)(struct l4lb_conn *conn);
	void	(*changed)(struct l4lb_conn *conn);
	void	(*held)(struct l4lb_conn *template);
	void	(*ended)(struct l4lb_conn *conn);
};

/* On while a namespace tells other directors about its connections. */
DECLARE_STATIC_KEY_FALSE(l4lb_conn_watched);

/* Kill a connection before its time, and tell so.  RCU. */
void l4lb_conn_end_early(struct l4lb_conn *conn, enum l4lb_end why);

/* RCU, BH off from here on; only while %l4lb_conn_watched is on. */

void l4lb_watch_changed(struct l4lb_conn *conn);
void l4lb_watch_held(struct l4lb_conn *template);

#endif /* _L4LB_CONN_WATCH_H */

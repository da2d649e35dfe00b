/* SPDX-License-Identifier: GPL-2.0 */
/* Connections are announced to other directors. */
#ifndef _L4LB_SYNC_SEND_H
#define _L4LB_SYNC_SEND_H

#include "conn/watch.h"
#include "base/net.h"
#include "sync/wire.h"

/* For the connection table. */
extern const struct l4lb_conn_events l4lb_sync_events;

/* RCU, BH off; for packets. */

/* A client's packet was counted, and its state change comes yet.  Return: it is
 * to be announced by l4lb_sync_due(), unless the change does.
 */
bool l4lb_sync_counted(struct l4lb_conn *conn);
void l4lb_sync_due(struct l4lb_conn *conn);

/**
 * enum l4lb_sync_which - connections that are described
 * @L4LB_SYNC_WORTH: those that other directors need
 * @L4LB_SYNC_ALSO_OVER: also those that both ends have closed
 * @L4LB_SYNC_WHOLE: all that last, whatever other directors are told
 */
enum l4lb_sync_which {
	L4LB_SYNC_WORTH,
	L4LB_SYNC_ALSO_OVER,
	L4LB_SYNC_WHOLE,
};

/* Does it last: open, or closed by one end, and not for one packet only? */
bool l4lb_sync_lasts(const struct l4lb_conn *conn);

/* Make a record of a connection as it is now, with the time that is left.
 * Return: false, it is none of @which.
 */
bool l4lb_sync_describe(struct l4lb_conn *conn, enum l4lb_sync_which which,
			struct l4lb_sync_record *record);

/* Announce it whether or not it was.  False: there is no room now. */
bool l4lb_sync_announce(struct l4lb_conn *conn);

/* A sending daemon is about to run: it tells all.  May sleep. */
void l4lb_sync_send_begin(struct l4lb_net *ln);

#endif /* _L4LB_SYNC_SEND_H */

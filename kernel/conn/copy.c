// SPDX-License-Identifier: GPL-2.0
/*
 * A record of another director creates a copy of its connection.  The client's
 * packets may come here from then on: the first one ends the copy, though it
 * remains a connection that came by a record.
 *
 *	connection	copy: no packet of its client was counted
 *	template	copy: no connection has used it since the last record
 *
 * If no packets come any more, a record makes it a copy again, and a local one,
 * too: its client is with the other director.  No packet writes anything for that.
 */
#include "conn/copy.h"

#include "conn/count.h"

#define USED_CONN	(1 * HZ)
#define USED_TEMPLATE	(2 * HZ)

/* Was a record the last to set its time? */
static bool is_recorded(const struct l4lb_conn *template)
{
	return READ_ONCE(template->last) == READ_ONCE(template->recorded);
}

bool l4lb_conn_unused_here(const struct l4lb_conn *conn)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return is_recorded(conn);
	return !l4lb_conn_packets(conn);
}

/**
 * l4lb_conn_used_here() - did the client's packets come here of late?
 * @conn: connection or template
 *
 * Return: true if there was one in the last second; for a template, if a
 * connection began or ended in the last two.
 */
bool l4lb_conn_used_here(const struct l4lb_conn *conn)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return !is_recorded(conn) &&
		       l4lb_conn_idle(conn) < USED_TEMPLATE;
	return l4lb_conn_packets(conn) && l4lb_conn_idle(conn) < USED_CONN;
}

/**
 * l4lb_conn_renew() - another director says that it lives
 * @conn: connection or template
 * @timeout: jiffies, up to %L4LB_CONN_TIMEOUT_MAX
 * @idle: jiffies of it that are over
 *
 * The time of a local packet is left as it is while l4lb_conn_used_here() asks
 * for it: it is nearly now.
 */
void l4lb_conn_renew(struct l4lb_conn *conn, u32 timeout, u32 idle)
{
	u32 seen = (u32)jiffies - idle;

	if (!l4lb_conn_used_here(conn)) {
		WRITE_ONCE(conn->last, seen);
		l4lb_conn_set(conn, L4LB_CONN_SYNCED);
		if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE)) {
			WRITE_ONCE(conn->recorded, seen);
		} else {
			l4lb_conn_set_packets(conn, 0);
			/* The ends are further on by now. */
			l4lb_conn_clear(conn, L4LB_CONN_NOTED);
		}
	}
	WRITE_ONCE(conn->timeout, timeout);
}

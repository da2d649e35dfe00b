// SPDX-License-Identifier: GPL-2.0
/*
 * Events of connections, for higher layers.  Nobody watches on most directors:
 * then a packet pays nothing for it.
 */
#include "conn/watch.h"

#include "conn/table.h"

DEFINE_STATIC_KEY_FALSE(l4lb_conn_watched);

static const struct l4lb_conn_events *events_of(const struct l4lb_conn *conn)
{
	return rcu_dereference(l4lb_conn_net(conn)->conns)->events;
}

void l4lb_watch_changed(struct l4lb_conn *conn)
{
	lockdep_assert_held(l4lb_conn_lock(conn));
	events_of(conn)->changed(conn);
}

void l4lb_watch_held(struct l4lb_conn *template)
{
	events_of(template)->held(template);
}

void l4lb_conn_end_early(struct l4lb_conn *conn, enum l4lb_end why)
{
	if (static_branch_unlikely(&l4lb_conn_watched))
		events_of(conn)->ended(conn);
	l4lb_conn_kill(conn, why);
}

// SPDX-License-Identifier: GPL-2.0
/* Passes the end of logged connections on to whoever keeps the log. */
#include "conn/log.h"

static const struct l4lb_conn_logger *kept_by __ro_after_init;

void __init l4lb_conn_log_listen(const struct l4lb_conn_logger *logger)
{
	kept_by = logger;
}

int l4lb_conn_log_open(struct l4lb_net *ln)
{
	lockdep_assert_held(&ln->lock);
	return kept_by->open(ln);
}

void l4lb_conn_log(const struct l4lb_conn *conn, enum l4lb_end why)
{
	kept_by->ended(conn, why);
}

/* SPDX-License-Identifier: GPL-2.0 */
/* Whoever keeps the log is told of each logged connection that ends. */
#ifndef _L4LB_CONN_LOG_H
#define _L4LB_CONN_LOG_H

#include "conn/conn.h"

/**
 * struct l4lb_conn_logger - keeps the log; in a higher layer
 * @open: makes room for the log of a namespace, if it has none.  Configuration
 *	mutex held, may sleep.  Return: 0, -ENOMEM, or -EAGAIN while the module is
 *	being loaded or unloaded
 * @ended: a connection with %L4LB_USE_LOGGED has ended.  RCU, any context
 */
struct l4lb_conn_logger {
	int	(*open)(struct l4lb_net *ln);
	void	(*ended)(const struct l4lb_conn *conn, enum l4lb_end why);
};

/* Before there is a namespace. */
void l4lb_conn_log_listen(const struct l4lb_conn_logger *logger);

int l4lb_conn_log_open(struct l4lb_net *ln);
void l4lb_conn_log(const struct l4lb_conn *conn, enum l4lb_end why);

#endif /* _L4LB_CONN_LOG_H */

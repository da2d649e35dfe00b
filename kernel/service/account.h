/* SPDX-License-Identifier: GPL-2.0 */
/* What connections and packets are counted for: real server, service and namespace.  RCU,
 * BH off.
 */
#ifndef _L4LB_ACCOUNT_H
#define _L4LB_ACCOUNT_H

#include "service/server.h"

/* Call it before the first packet of an interval is counted: the counts so far
 * belong to earlier ones.  It ends those that are over, of real server, service
 * and namespace, and notes when one ends next.  @event and @len say what the
 * caller is about to count.  Return: false if it is counted for @server already.
 */
bool l4lb_account_interval(struct l4lb_server *server, struct l4lb_service *svc,
			   enum l4lb_stats_event event, unsigned int len);

/* Account a new connection or a forwarded packet of @len bytes to real server,
 * service and namespace.
 */
static __always_inline void l4lb_account(struct l4lb_server *server,
					 enum l4lb_stats_event event,
					 unsigned int len)
{
	struct l4lb_service *svc = rcu_dereference(server->svc);

	if (!svc)
		return;
	if (!l4lb_stats_due(&server->stats) ||
	    l4lb_account_interval(server, svc, event, len))
		l4lb_stats_count(&server->stats, event, len);
	l4lb_stats_count(&svc->stats, event, len);
	l4lb_stats_count(&server->ln->stats, event, len);
}

static inline void l4lb_account_conn(struct l4lb_server *server)
{
	l4lb_account(server, L4LB_STATS_CONN, 0);
}

static inline void l4lb_account_in(struct l4lb_server *server, unsigned int len)
{
	l4lb_account(server, L4LB_STATS_IN, len);
}

static inline void l4lb_account_out(struct l4lb_server *server,
				    unsigned int len)
{
	l4lb_account(server, L4LB_STATS_OUT, len);
}

#endif /* _L4LB_ACCOUNT_H */

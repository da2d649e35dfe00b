/* SPDX-License-Identifier: GPL-2.0 */
/* How long connections live; see state.c for all but UDP. */
#ifndef _L4LB_CONN_TIMEOUT_H
#define _L4LB_CONN_TIMEOUT_H

#include "conn/conn.h"

/* Jiffies that a connection of UDP to @server lives without packets.  RCU. */
static inline u32 l4lb_state_udp_timeout(const struct l4lb_server *server)
{
	const struct l4lb_service *svc = rcu_dereference(server->svc);
	u32 seconds = svc ? READ_ONCE(svc->policy.udp) : 0;

	return seconds ? seconds * HZ : READ_ONCE(server->ln->timeouts.udp);
}

#endif /* _L4LB_CONN_TIMEOUT_H */

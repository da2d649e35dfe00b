/* SPDX-License-Identifier: GPL-2.0 */
/* Where a new connection goes.  Included by conn.h. */
#ifndef _L4LB_CONN_TARGET_H
#define _L4LB_CONN_TARGET_H

#include <linux/types.h>

struct l4lb_flow;
struct l4lb_pkt;
struct l4lb_server;

/**
 * struct l4lb_conn_target - where a new connection goes
 * @server: real server
 * @dport: the port it listens on
 * @first: the packet that opens it, see l4lb_pkt_begins(): the connection begins
 *	in the state after that packet.  NULL: in its first state
 * @flow: instead, of a template, whose key is masked: the flow that @server was chosen for
 */
struct l4lb_conn_target {
	struct l4lb_server	*server;
	__be16			dport;
	union {
		const struct l4lb_pkt	*first;
		const struct l4lb_flow	*flow;
	};
};

#endif /* _L4LB_CONN_TARGET_H */

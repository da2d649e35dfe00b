/* SPDX-License-Identifier: GPL-2.0 */
/* The connection of a packet. */
#ifndef _L4LB_CONN_LOOKUP_H
#define _L4LB_CONN_LOOKUP_H

#include "conn/table.h"

/* Lookup: RCU, BH off.  Expired connections are not found. */
struct l4lb_conn *l4lb_conn_find_in(struct l4lb_net *ln,
				    const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_conn_find_out(struct l4lb_net *ln,
				     const struct l4lb_flow *flow);
/* Both at once; *@reply is set if @flow comes from the real server. */
struct l4lb_conn *l4lb_conn_find_both(struct l4lb_net *ln,
				      struct l4lb_flow *flow, bool *reply);
struct l4lb_conn *l4lb_conn_find_template(struct l4lb_net *ln,
					  const struct l4lb_flow *key);

#endif /* _L4LB_CONN_LOOKUP_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* A connection as attributes. */
#ifndef _L4LB_NETLINK_CONN_FILL_H
#define _L4LB_NETLINK_CONN_FILL_H

#include "conn/conn.h"

struct sk_buff;

bool l4lb_nl_is_of_mark(const struct l4lb_conn *conn);
/* L4LB_CONN_F_* of one that is in the table. */
u32 l4lb_nl_conn_flags(const struct l4lb_conn *conn);

/* RCU.  Return: 0 or -EMSGSIZE with a part of it in @skb. */

int l4lb_nl_fill_conn(struct sk_buff *skb, const struct l4lb_conn *conn);
/* One with %L4LB_USE_LOGGED that has just ended. */
int l4lb_nl_fill_ended(struct sk_buff *skb, const struct l4lb_conn *conn,
		       enum l4lb_end why);

#endif /* _L4LB_NETLINK_CONN_FILL_H */

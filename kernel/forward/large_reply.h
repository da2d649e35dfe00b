/* SPDX-License-Identifier: GPL-2.0 */
/* What the stack does with a reply of a large connection. */
#ifndef _L4LB_LARGE_REPLY_H
#define _L4LB_LARGE_REPLY_H

#include "conn/latency.h"
#include "forward/las_reply.h"

/* One test for all others.  RCU, BH off. */
static inline void l4lb_large_reply(struct sk_buff *skb,
				    const struct l4lb_pkt *pkt,
				    struct l4lb_conn *conn)
{
	if (!l4lb_conn_has_use(conn, L4LB_USE_SERVED | L4LB_USE_LATENCY))
		return;
	l4lb_las_reply(skb, conn, skb->len);
	if (READ_ONCE(conn->uses) & L4LB_USE_LATENCY)
		l4lb_latency_note_reply(conn, skb, pkt);
}

#endif /* _L4LB_LARGE_REPLY_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Priority bands of replies, see service/las.c. */
#ifndef _L4LB_LAS_REPLY_H
#define _L4LB_LAS_REPLY_H

#include "conn/conn.h"

void l4lb_las_band(struct sk_buff *skb, struct l4lb_conn *conn,
		   unsigned int len);

/* Put a reply of @len bytes into its priority band.  RCU, BH off. */
static inline void l4lb_las_reply(struct sk_buff *skb, struct l4lb_conn *conn,
				  unsigned int len)
{
	if (l4lb_conn_has_use(conn, L4LB_USE_SERVED))
		l4lb_las_band(skb, conn, len);
}

#endif /* _L4LB_LAS_REPLY_H */

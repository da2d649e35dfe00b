/* SPDX-License-Identifier: GPL-2.0 */
/* Forwarding by IP tunnel; verdicts as in forward.h. */
#ifndef _L4LB_TUNNEL_H
#define _L4LB_TUNNEL_H

#include "conn/conn.h"
#include "service/route.h"

unsigned int l4lb_tunnel_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn);

/* For the fast path: only change the packet.  0 or -ENOMEM. */
int l4lb_tunnel_wrap(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		     const struct l4lb_conn *conn,
		     const struct l4lb_route *rt);
/* Bytes that l4lb_tunnel_wrap() adds. */
unsigned int l4lb_tunnel_room(const struct sk_buff *skb,
			      const struct l4lb_conn *conn);

#endif /* _L4LB_TUNNEL_H */

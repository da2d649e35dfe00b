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

/* For XDP: bytes of the outer header; 0 if the tunnel is not of type IPIP. */
unsigned int l4lb_tunnel_ipip_room(const struct l4lb_conn *conn);
/* Writes it to @outer; behind it is the inner packet, of family @af and with @len
 * bytes.
 */
void l4lb_tunnel_ipip_write(void *outer, u8 af, unsigned int len,
			    const struct l4lb_conn *conn,
			    const struct l4lb_route *rt);

#endif /* _L4LB_TUNNEL_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* ICMP errors about tunnel packets of ours. */
#ifndef _L4LB_TUNNEL_ERROR_H
#define _L4LB_TUNNEL_ERROR_H

#include "forward/icmp.h"

/* Handle an ICMP error that may be about a tunnel packet of ours.  @skb stays
 * unchanged and remains the caller's.
 */
void l4lb_tunnel_error(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct l4lb_net *ln, const struct l4lb_quote *quote);

#endif /* _L4LB_TUNNEL_ERROR_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* ICMP errors about tunnel packets of ours. */
#ifndef _L4LB_TUNNEL_ERROR_H
#define _L4LB_TUNNEL_ERROR_H

#include "forward/icmp.h"

/* An error that is about no flow of ours, perhaps about a tunnel packet that we
 * made (tunnel_error.c).  It goes on to the local stack in any case.
 */
void l4lb_tunnel_error(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct l4lb_net *ln, const struct l4lb_quote *quote);

#endif /* _L4LB_TUNNEL_ERROR_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Replies to one-packet scheduling; verdicts as in forward.h. */
#ifndef _L4LB_ONE_PACKET_H
#define _L4LB_ONE_PACKET_H

#include "base/flow.h"
#include "base/net.h"

int l4lb_one_packet_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			  struct l4lb_net *ln, const struct l4lb_flow *flow,
			  unsigned int quoted);

#endif /* _L4LB_ONE_PACKET_H */

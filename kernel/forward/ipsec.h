/* SPDX-License-Identifier: GPL-2.0 */
/* AH and ESP of real servers and their clients; verdicts as in forward.h. */
#ifndef _L4LB_IPSEC_H
#define _L4LB_IPSEC_H

#include "base/flow.h"
#include "base/net.h"

unsigned int l4lb_ipsec_in(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   struct l4lb_net *ln);
unsigned int l4lb_ipsec_out(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			    struct l4lb_net *ln);

#endif /* _L4LB_IPSEC_H */

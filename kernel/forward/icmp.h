/* SPDX-License-Identifier: GPL-2.0 */
/* ICMP errors and what they quote. */
#ifndef _L4LB_ICMP_H
#define _L4LB_ICMP_H

#include "base/flow.h"
#include "base/net.h"

/**
 * struct l4lb_quote - an ICMP error and the packet it quotes
 * @type: ICMP type of the error
 * @code: ICMP code of the error
 * @info: MTU, if errors of this type carry one
 * @off: offset of the quoted packet from skb->data
 * @pkt: the quoted packet
 * @parse: result of parsing the quoted packet
 */
struct l4lb_quote {
	u8		type, code;
	u32		info;
	unsigned int	off;
	struct l4lb_pkt	pkt;
	enum l4lb_parse	parse;
};

/* Handle ICMP errors on their way in and out.  Return netfilter verdicts. */
unsigned int l4lb_icmp_in(struct sk_buff *skb, struct l4lb_pkt *pkt,
			  struct l4lb_net *ln);
unsigned int l4lb_icmp_out(struct sk_buff *skb, struct l4lb_pkt *pkt,
			   struct l4lb_net *ln);

#endif /* _L4LB_ICMP_H */

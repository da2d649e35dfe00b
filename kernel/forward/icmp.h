/* SPDX-License-Identifier: GPL-2.0 */
/* ICMP errors and what they quote. */
#ifndef _L4LB_ICMP_H
#define _L4LB_ICMP_H

#include "base/flow.h"
#include "base/net.h"

/**
 * struct l4lb_quote - an ICMP error and the packet it quotes
 * @type: of the error
 * @code: of the error
 * @info: MTU, for those that carry it
 * @off: offset of the quoted packet from skb->data
 * @pkt: the quoted packet
 * @parse: what came of parsing it
 */
struct l4lb_quote {
	u8		type, code;
	u32		info;
	unsigned int	off;
	struct l4lb_pkt	pkt;
	enum l4lb_parse	parse;
};

/* Is the error's own checksum right?  If not, that was counted. */
bool l4lb_icmp_checksum_ok(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   const struct l4lb_net *ln);

/* An error that is about no flow of ours, perhaps about a tunnel packet that we
 * made (tunnel_error.c).  It goes on to the local stack in any case.
 */
void l4lb_tunnel_error(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		       struct l4lb_net *ln, const struct l4lb_quote *quote);

#endif /* _L4LB_ICMP_H */

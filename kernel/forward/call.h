/* SPDX-License-Identifier: GPL-2.0 */
/* Services with persistence engine sip: packets and their Call-IDs.  RCU, BH off. */
#ifndef _L4LB_FORWARD_CALL_H
#define _L4LB_FORWARD_CALL_H

#include "conn/call.h"

/* Sets @key->id and @key->len, valid until @skb changes; false: it has no Call-ID.
 * May move the packet's data.
 */
bool l4lb_call_read(struct sk_buff *skb, const struct l4lb_pkt *pkt,
		    struct l4lb_call_key *key);
struct l4lb_conn *l4lb_call_begin(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				  struct l4lb_net *ln);

#endif /* _L4LB_FORWARD_CALL_H */

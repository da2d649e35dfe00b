/* SPDX-License-Identifier: GPL-2.0 */
/* Data connections, which conntrack expects because of a control connection. */
#ifndef _L4LB_RELATED_H
#define _L4LB_RELATED_H

#include "conn/helper.h"

/* The connection of a packet that has none; NULL: it is not expected.  Only with
 * l4lb_helper_used().  RCU, BH off.
 */
struct l4lb_conn *l4lb_related_request(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				       struct l4lb_net *ln);
/* The same for a packet of a real server. */
struct l4lb_conn *l4lb_related_reply(struct sk_buff *skb, const struct l4lb_pkt *pkt,
				     struct l4lb_net *ln);

#endif /* _L4LB_RELATED_H */

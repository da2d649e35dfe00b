/* SPDX-License-Identifier: GPL-2.0 */
/* Fragments of IPv4 at FORWARD. */
#ifndef _L4LB_FRAGMENT_H
#define _L4LB_FRAGMENT_H

#include "base/flow.h"
#include "base/net.h"

bool l4lb_fragment_is_ours(struct l4lb_net *ln, const struct l4lb_flow *flow);
int l4lb_fragment_complete(struct sk_buff *skb, const struct l4lb_net *ln);

#endif /* _L4LB_FRAGMENT_H */

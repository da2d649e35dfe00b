/* SPDX-License-Identifier: GPL-2.0 */
/* Packets on the fast path. */
#ifndef _L4LB_FAST_PACKET_H
#define _L4LB_FAST_PACKET_H

#include <linux/netfilter.h>

/* The hook at a device's ingress; @priv: struct l4lb_fast_device. */
unsigned int l4lb_fast_packet(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state);

#endif /* _L4LB_FAST_PACKET_H */

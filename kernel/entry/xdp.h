/* SPDX-License-Identifier: GPL-2.0 */
/* The fast path before there is an skb. */
#ifndef _L4LB_XDP_H
#define _L4LB_XDP_H

#include <linux/init.h>
#include <linux/types.h>

struct net_device;
struct xdp_md;

/* A cable to a virtual machine, which leaves checksums to the other end: the driver
 * knows that, and an XDP program does not.
 */
bool l4lb_xdp_is_opaque(const struct net_device *dev);

u64 l4lb_xdp(struct xdp_md *ctx, u32 ifindex);
void __init l4lb_xdp_init(void);

#endif /* _L4LB_XDP_H */

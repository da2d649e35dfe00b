/* SPDX-License-Identifier: GPL-2.0 */
/* What a frame may not show. */
#ifndef _L4LB_XDP_FRAME_H
#define _L4LB_XDP_FRAME_H

#include <linux/netdevice.h>

#include "entry/fast_device.h"
#include "entry/xdp.h"

/* The other end of a pair of virtual devices. */
static inline struct net_device *l4lb_xdp_peer_of(const struct net_device *dev)
{
	return dev->netdev_ops->ndo_get_peer_dev ?
	       dev->netdev_ops->ndo_get_peer_dev((struct net_device *)dev) :
	       NULL;
}

/* May a frame from @dev, which is @d's or a slave of it, lack a part that only the
 * driver knows?
 */
static __always_inline bool l4lb_xdp_is_hiding(const struct l4lb_fast_device *d,
					       const struct net_device *dev)
{
	const struct net_device *peer = l4lb_xdp_peer_of(dev);

	if (unlikely(d->opaque || (dev != d->ops.dev && l4lb_xdp_is_opaque(dev))))
		return true;
	if (peer)
		return READ_ONCE(peer->features) &
		       (NETIF_F_CSUM_MASK | NETIF_F_HW_VLAN_CTAG_TX |
			NETIF_F_HW_VLAN_STAG_TX);
	return READ_ONCE(dev->features) & (NETIF_F_HW_VLAN_CTAG_RX |
					   NETIF_F_HW_VLAN_STAG_RX);
}

#endif /* _L4LB_XDP_FRAME_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* A neighbour's Ethernet address, kept beside the number of its changes.  RCU. */
#ifndef _L4LB_HOP_H
#define _L4LB_HOP_H

#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <net/neighbour.h>

/**
 * union l4lb_hop - the Ethernet address of a neighbour
 * @word: to read and write all at once; 0: none is known
 * @changes: how often the neighbour's address has changed, with the lowest bit set
 * @addr: the address
 */
union l4lb_hop {
	u64		word;
	struct {
		u16	changes;
		u8	addr[ETH_ALEN];
	};
};

static inline bool l4lb_dev_is_ethernet(const struct net_device *dev)
{
	return dev->type == ARPHRD_ETHER && dev->addr_len == ETH_ALEN &&
	       dev->hard_header_len == ETH_HLEN;
}

/* Where a frame to @neigh, a neighbour on Ethernet, goes. */
static inline union l4lb_hop l4lb_neigh_hop(const struct neighbour *neigh)
{
	union l4lb_hop hop;
	unsigned int begin;

	do {
		begin = read_seqbegin(&neigh->ha_lock);
		ether_addr_copy(hop.addr, neigh->ha);
	} while (read_seqretry(&neigh->ha_lock, begin));
	hop.changes = begin | 1;
	return hop;
}

/* During a change the number is odd, and the address is still the old one. */
static inline u16 l4lb_neigh_changes(const struct neighbour *neigh)
{
	return raw_read_seqcount(&neigh->ha_lock.seqcount) | 1;
}

#endif /* _L4LB_HOP_H */

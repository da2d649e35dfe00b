/* SPDX-License-Identifier: GPL-2.0 */
/* Messages arrive from peers, and from the multicast group. */
#ifndef _L4LB_SYNC_ARRIVE_H
#define _L4LB_SYNC_ARRIVE_H

#include "sync/peer.h"

/* Both may sleep; no lock held.  @data: its MAC is overwritten. */

/* A datagram on the socket for peers.  @hops: its TTL or hop limit. */
void l4lb_sync_arrive(struct l4lb_sync_peers *peers, u8 *data, size_t len,
		      const struct sockaddr_storage *from, int hops);

/* Is a message of the multicast group to be used?  What is not is counted.
 * @how: set to bits of enum l4lb_sync_how
 */
bool l4lb_sync_admit(struct l4lb_sync_peers *peers, u8 *data, size_t len,
		     const struct sockaddr_storage *from, unsigned int *how);

#endif /* _L4LB_SYNC_ARRIVE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* All connections, or those of some slices, are sent to a peer. */
#ifndef _L4LB_SYNC_BULK_H
#define _L4LB_SYNC_BULK_H

#include <linux/siphash.h>

#include "sync/peer.h"

struct l4lb_sync_bulk;

struct l4lb_sync_bulk *l4lb_sync_bulk_new(void);
/* @bulk: or NULL.  Nothing uses it any more. */
void l4lb_sync_bulk_free(struct l4lb_sync_bulk *bulk);

/* @peers->lock held, @peers->state not: */

/* The peer asks for all. */
void l4lb_sync_resync_take(struct l4lb_sync_peer *peer, const u8 *body,
			   size_t len);
/* Send up to @n records, and return how many; for the walker. */
unsigned int l4lb_sync_bulk_run(struct l4lb_sync_peer *peer, unsigned int n);

/* @peers->state held: */

/* What is sent is of no use any more. */
void l4lb_sync_bulk_stop(struct l4lb_sync_peer *peer);
/* Send the connections of slices, see digest.h, also those that have ended, unless
 * others are being sent.  @nonce: number of the comparison.
 */
void l4lb_sync_bulk_slices(struct l4lb_sync_peer *peer, u64 nonce,
			   const siphash_key_t *key,
			   const unsigned long *slices);
/* Is there something to send? */
bool l4lb_sync_bulk_busy(const struct l4lb_sync_peer *peer);
/* Records of the last walk. */
u32 l4lb_sync_bulk_sent(const struct l4lb_sync_peer *peer);

#endif /* _L4LB_SYNC_BULK_H */

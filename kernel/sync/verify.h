/* SPDX-License-Identifier: GPL-2.0 */
/* The connections of a peer are compared with those here. */
#ifndef _L4LB_SYNC_VERIFY_H
#define _L4LB_SYNC_VERIFY_H

#include "sync/peer.h"

struct l4lb_sync_verify;

/**
 * struct l4lb_sync_verified - the last comparison
 * @n: comparisons that are complete
 * @difference: slices that differed, before they were sent again
 * @compared: connections and templates here
 */
struct l4lb_sync_verified {
	u32	n;
	u32	difference;
	u32	compared;
};

struct l4lb_sync_verify *l4lb_sync_verify_new(void);
/* @verify: or NULL.  Nothing uses it any more. */
void l4lb_sync_verify_free(struct l4lb_sync_verify *verify);

/* @peers->state held: */

/* Compare soon; a comparison that goes on does not count. */
void l4lb_sync_verify_due(struct l4lb_sync_peer *peer);
/* The peer, or this director, is another sender. */
void l4lb_sync_verify_reset(struct l4lb_sync_peer *peer);
/* Records that were asked for have come; at last, all of @records. */
void l4lb_sync_verify_records(struct l4lb_sync_peer *peer, unsigned int n);
void l4lb_sync_verify_end(struct l4lb_sync_peer *peer, u64 nonce, u32 records);
/* Is something to be computed? */
bool l4lb_sync_verify_busy(const struct l4lb_sync_peer *peer);
const struct l4lb_sync_verified *
l4lb_sync_verified(const struct l4lb_sync_peer *peer);

/* @peers->lock held, @peers->state not: */

/* Each second. */
void l4lb_sync_verify_tick(struct l4lb_sync_peer *peer);
/* Compute for a while; for the walker. */
void l4lb_sync_verify_run(struct l4lb_sync_peer *peer);
/* Messages of the peer. */
void l4lb_sync_digest_ask_take(struct l4lb_sync_peer *peer, const u8 *body,
			       size_t len);
void l4lb_sync_digest_take(struct l4lb_sync_peer *peer, const u8 *body,
			   size_t len);
void l4lb_sync_slices_take(struct l4lb_sync_peer *peer, const u8 *body,
			   size_t len);

#endif /* _L4LB_SYNC_VERIFY_H */

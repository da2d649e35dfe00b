/* SPDX-License-Identifier: GPL-2.0 */
/* All connections of a peer are asked for, and come. */
#ifndef _L4LB_SYNC_JOIN_H
#define _L4LB_SYNC_JOIN_H

#include "sync/peer.h"

/**
 * struct l4lb_sync_join - the resync of a peer's connections to here
 * @done: all of them have come, and nothing was lost since
 * @due: they are to be asked for (again)
 * @asked: they were, and have not all come yet
 * @began: the peer has answered
 * @nonce: of the request
 * @heard: jiffies of the last sign of it
 * @expected: connections and templates that the peer has, about
 * @came: records of the last resync
 * @n: resyncs that are complete
 *
 * Protected by @peers->state.
 */
struct l4lb_sync_join {
	bool		done;
	bool		due;
	bool		asked;
	bool		began;
	u64		nonce;
	unsigned long	heard;
	u32		expected;
	u32		came;
	u32		n;
};

/* @peers->state held: */

/* Another sender is there: nothing of it has come. */
void l4lb_sync_join_reset(struct l4lb_sync_peer *peer);
/* Ask for all, unless that goes on already. */
void l4lb_sync_join_ask(struct l4lb_sync_peer *peer);
/* Messages were lost: what comes now may not be all. */
void l4lb_sync_join_lost(struct l4lb_sync_peer *peer);
/* A message of a resync has come. */
void l4lb_sync_join_records(struct l4lb_sync_peer *peer, unsigned int n);
/* The peer has the same connections. */
void l4lb_sync_join_equal(struct l4lb_sync_peer *peer);

/* @peers->lock held, @peers->state not: */

/* Each second. */
void l4lb_sync_join_tick(struct l4lb_sync_peer *peer);
/* The peer's answers. */
void l4lb_sync_bulk_begin_take(struct l4lb_sync_peer *peer, const u8 *body,
			       size_t len);
void l4lb_sync_bulk_end_take(struct l4lb_sync_peer *peer, const u8 *body,
			     size_t len);

#endif /* _L4LB_SYNC_JOIN_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Messages that were sent, kept to be sent again. */
#ifndef _L4LB_SYNC_RING_H
#define _L4LB_SYNC_RING_H

#include <linux/mutex.h>

#include "sync/queue.h"
#include "sync/window.h"

/* Bytes that messages of all rings of a namespace occupy. */
#define L4LB_SYNC_KEPT_MAX	(4UL << 20)

/**
 * struct l4lb_sync_ring - the last messages of a stream
 * @lock: protects the rest; innermost of the mutexes
 * @newest: number of the last message that was sent; 0: none
 * @oldest: number of the first that is kept; @newest + 1: none
 * @bytes: memory of those kept
 * @kept: the messages, by their number modulo %L4LB_SYNC_WINDOW; allocated with
 *	the first
 */
struct l4lb_sync_ring {
	struct mutex			lock;
	u64				newest;
	u64				oldest;
	size_t				bytes;
	struct l4lb_sync_message	**kept;
};

/* Each may sleep. */

void l4lb_sync_ring_init(struct l4lb_sync_ring *ring);
/* Forget all; the next message has number 1. */
void l4lb_sync_ring_clear(struct l4lb_sync_ring *ring);
/* Free what is kept; numbers go on. */
void l4lb_sync_ring_empty(struct l4lb_sync_ring *ring);

/**
 * l4lb_sync_ring_put() - keep a message
 * @ring: of its stream
 * @message: @message->sequence is the next one; owned by the ring from now on
 * @limit: bytes that the ring may occupy; 0: nothing is kept
 */
void l4lb_sync_ring_put(struct l4lb_sync_ring *ring,
			struct l4lb_sync_message *message, size_t limit);
/* The message of this number, or NULL.  @ring->lock held. */
struct l4lb_sync_message *l4lb_sync_ring_get(struct l4lb_sync_ring *ring,
					     u64 sequence);

#endif /* _L4LB_SYNC_RING_H */

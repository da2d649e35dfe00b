// SPDX-License-Identifier: GPL-2.0
/*
 * A receiver asks for what it misses among the last 1,024 messages of a stream,
 * so no more are kept, and not more than the stream's share of memory.
 */
#include "sync/ring.h"

#include <linux/slab.h>

static struct l4lb_sync_message **slot(struct l4lb_sync_ring *ring,
				       u64 sequence)
{
	lockdep_assert_held(&ring->lock);
	return &ring->kept[sequence % L4LB_SYNC_WINDOW];
}

static size_t size_of(const struct l4lb_sync_message *message)
{
	return ksize(message);
}

static void drop_oldest(struct l4lb_sync_ring *ring)
{
	struct l4lb_sync_message **place = slot(ring, ring->oldest);

	ring->bytes -= size_of(*place);
	kfree(*place);
	*place = NULL;
	ring->oldest++;
}

static void drop_all(struct l4lb_sync_ring *ring)
{
	while (ring->oldest <= ring->newest)
		drop_oldest(ring);
}

void l4lb_sync_ring_init(struct l4lb_sync_ring *ring)
{
	mutex_init(&ring->lock);
	ring->oldest = 1;
}

static void empty(struct l4lb_sync_ring *ring)
{
	drop_all(ring);
	kvfree(ring->kept);
	ring->kept = NULL;
}

void l4lb_sync_ring_empty(struct l4lb_sync_ring *ring)
{
	mutex_lock(&ring->lock);
	empty(ring);
	mutex_unlock(&ring->lock);
}

void l4lb_sync_ring_clear(struct l4lb_sync_ring *ring)
{
	mutex_lock(&ring->lock);
	empty(ring);
	ring->newest = 0;
	ring->oldest = 1;
	mutex_unlock(&ring->lock);
}

/* Room for one more, or not even that. */
static bool make_room(struct l4lb_sync_ring *ring, size_t size, size_t limit)
{
	if (size > limit) {
		drop_all(ring);
		return false;
	}
	if (!ring->kept)
		ring->kept = kvcalloc(L4LB_SYNC_WINDOW, sizeof(*ring->kept),
				      GFP_KERNEL | __GFP_NOWARN);
	if (!ring->kept)
		return false;
	while (ring->oldest <= ring->newest &&
	       (ring->bytes + size > limit ||
		ring->newest - ring->oldest + 1 >= L4LB_SYNC_WINDOW))
		drop_oldest(ring);
	return true;
}

void l4lb_sync_ring_put(struct l4lb_sync_ring *ring,
			struct l4lb_sync_message *message, size_t limit)
{
	size_t size = size_of(message);

	mutex_lock(&ring->lock);
	if (make_room(ring, size, limit)) {
		ring->newest = message->sequence;
		*slot(ring, ring->newest) = message;
		ring->bytes += size;
	} else {
		ring->newest = message->sequence;
		ring->oldest = message->sequence + 1;
		kfree(message);
	}
	mutex_unlock(&ring->lock);
}

struct l4lb_sync_message *l4lb_sync_ring_get(struct l4lb_sync_ring *ring,
					     u64 sequence)
{
	lockdep_assert_held(&ring->lock);
	if (sequence < ring->oldest || sequence > ring->newest)
		return NULL;
	return *slot(ring, sequence);
}

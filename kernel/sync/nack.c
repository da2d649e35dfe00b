// SPDX-License-Identifier: GPL-2.0
/*
 * A message that is missing at two ticks, 50 ms apart, is asked for.  The peer
 * sends it again, if it still has it; if not, its next HELLO says so, and the
 * receiver asks for all connections.
 */
#include "sync/nack.h"

#include "sync/counter.h"
#include "sync/hello.h"
#include "sync/outlet.h"

enum {
	NACK_MS		= 100,	/* at least between two */
	AGAIN_RATE	= 4096,	/* messages sent again, per second and peer */
};

/* ---- asking ---- */

/* @len: bytes of @body that are used */
struct request {
	u8		*body;
	size_t		len;
	unsigned int	n;
};

static void count(struct l4lb_sync_peer *peer, const struct l4lb_sync_range *gap)
{
	u64 *counted = &peer->counted[gap->stream];

	if (gap->last <= *counted)
		return;
	peer->n_gaps += gap->last + 1 - max(gap->first, *counted + 1);
	*counted = gap->last;
}

/* Missing messages of a stream up to the one that was the newest at the last
 * tick.
 */
static void look_at(struct l4lb_sync_peer *peer, unsigned int stream,
		    struct request *request)
{
	const struct l4lb_sync_window *window = &peer->source.streams[stream];
	struct l4lb_sync_range gap = { .stream = stream };
	u64 from = window->base + 1;

	while (request->n < L4LB_SYNC_RANGES_MAX) {
		gap.first = l4lb_sync_window_gap(window, from,
						 peer->due[stream], &gap.last);
		if (!gap.first)
			break;
		request->len = l4lb_sync_nack_put(request->body, request->n++,
						  &gap);
		count(peer, &gap);
		from = gap.last + 1;
	}
	peer->due[stream] = window->known;
}

static void collect(struct l4lb_sync_peer *peer, struct request *request)
{
	u64 gaps = peer->source.gaps;

	lockdep_assert_held(&peer->peers->state);
	while (gaps) {
		look_at(peer, __ffs64(gaps), request);
		gaps &= gaps - 1;
	}
	if (request->n)
		peer->nacked = jiffies;
}

bool l4lb_sync_nack_send(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_peers *peers = peer->peers;
	u8 data[L4LB_SYNC_CONTROL_MAX];
	struct request request = { .body = data + L4LB_SYNC_BODY_AT };
	bool gaps;

	spin_lock(&peers->state);
	gaps = peer->source.gaps && l4lb_sync_peer_present(peer);
	if (gaps && time_after_eq(jiffies, peer->nacked +
				  msecs_to_jiffies(NACK_MS)))
		collect(peer, &request);
	spin_unlock(&peers->state);
	if (request.n)
		l4lb_sync_peer_send(peer, L4LB_SYNC_NACK, data, request.len);
	return gaps;
}

/* ---- sending again ---- */

static bool may_send(struct l4lb_sync_peer *peer)
{
	bool may;

	spin_lock(&peer->peers->state);
	may = l4lb_sync_bucket_take(&peer->again_out, AGAIN_RATE, 1);
	if (may)
		peer->n_resent++;
	spin_unlock(&peer->peers->state);
	return may;
}

static void resend(struct l4lb_sync_peer *peer, u8 stream,
		   struct l4lb_sync_message *message)
{
	const struct l4lb_sync_peers *peers = peer->peers;
	const struct l4lb_sync_trailer trailer = {
		.sender		= peers->sender,
		.sequence	= message->sequence,
		.flags		= L4LB_SYNC_T_AGAIN |
				  (peers->keys.on ? L4LB_SYNC_T_KEYED : 0),
		.stream		= stream,
	};

	l4lb_sync_trailer_renew(message->data, message->buf.len, &trailer);
	l4lb_sync_sign(&peers->keys, message->data, message->buf.len);
	l4lb_sync_peer_transmit(peer, message->data, message->buf.len);
}

/* At most as many steps as a ring has messages.  Returns whether all of them are
 * kept.
 */
static bool send_range(struct l4lb_sync_peer *peer,
		       const struct l4lb_sync_range *range)
{
	struct l4lb_sync_ring *ring = &peer->peers->rings[range->stream];
	u64 i, last;
	bool kept;

	mutex_lock(&ring->lock);
	kept = range->first >= ring->oldest;
	last = min(range->last, ring->newest);
	for (i = max(range->first, ring->oldest); i <= last; i++) {
		if (!may_send(peer))
			break;
		resend(peer, range->stream, l4lb_sync_ring_get(ring, i));
	}
	mutex_unlock(&ring->lock);
	return kept;
}

void l4lb_sync_nack_take(struct l4lb_sync_peer *peer, const u8 *body,
			 size_t len)
{
	struct l4lb_sync_range ranges[L4LB_SYNC_RANGES_MAX];
	unsigned int i, n = l4lb_sync_nack_read(ranges, body, len);
	bool kept = true;

	if (!n) {
		l4lb_sync_count(peer->peers->ln, L4LB_SYNC_N_CONTROL);
		return;
	}
	for (i = 0; i < n; i++)
		kept &= send_range(peer, &ranges[i]);
	if (!kept)
		l4lb_sync_hello_send(peer);
}

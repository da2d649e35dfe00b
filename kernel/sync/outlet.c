// SPDX-License-Identifier: GPL-2.0
/*
 * Messages leave for peers: those of the sending daemon's threads get a trailer,
 * and are kept for a while, and control messages.
 *
 * A peer that is not heard gets no messages of threads: while its link-layer
 * address is unknown they would fill the socket that others need.
 */
#include "sync/outlet.h"

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/net.h>
#include <linux/slab.h>

#include "sync/counter.h"
#include "sync/hello.h"
#include "sync/link.h"

static void sign(const struct l4lb_sync_peers *peers,
		 struct l4lb_sync_trailer *trailer)
{
	lockdep_assert_held(&peers->lock);
	trailer->sender = peers->sender;
	if (peers->keys.on)
		trailer->flags |= L4LB_SYNC_T_KEYED;
}

int l4lb_sync_peer_transmit(struct l4lb_sync_peer *peer, u8 *data, size_t len)
{
	const struct l4lb_sync_peers *peers = peer->peers;
	struct msghdr msg = {
		.msg_flags	= MSG_DONTWAIT | MSG_NOSIGNAL,
		.msg_name	= &peer->addr,
		.msg_namelen	= l4lb_sync_address_len(&peer->addr),
	};
	struct kvec bytes = { .iov_base = data, .iov_len = len };
	int sent;

	lockdep_assert_held(&peers->lock);
	sent = kernel_sendmsg(l4lb_sync_link_socket(peers, &peer->addr), &msg,
			      &bytes, 1, len);
	l4lb_sync_count(peers->ln, sent < 0 ? L4LB_SYNC_N_PEER_ERRORS :
					      L4LB_SYNC_N_PEER_OUT);
	return min(sent, 0);
}

/* ---- messages of threads ---- */

static bool is_present(const struct l4lb_sync_peer *peer)
{
	bool present;

	spin_lock(&peer->peers->state);
	present = l4lb_sync_peer_present(peer);
	spin_unlock(&peer->peers->state);
	return present;
}

bool l4lb_sync_seal(struct l4lb_sync_peers *peers,
		    struct l4lb_sync_message *message, u8 stream, size_t *len)
{
	struct l4lb_sync_trailer trailer = {
		.stream		= stream,
		.backlog	= message->backlog,
	};
	bool multicast;
	unsigned int i;

	down_read(&peers->lock);
	multicast = peers->multicast;
	if ((!peers->n && !peers->keys.on) || stream >= peers->n_streams)
		goto unlock;
	trailer.sequence = READ_ONCE(peers->rings[stream].newest) + 1;
	sign(peers, &trailer);
	message->sequence = trailer.sequence;
	*len = l4lb_sync_trailer_put(message->data, *len, &trailer);
	message->buf.len = *len;
	l4lb_sync_sign(&peers->keys, message->data, *len);
	for (i = 0; i < peers->n; i++)
		if (is_present(peers->peer[i]))
			l4lb_sync_peer_transmit(peers->peer[i], message->data,
						*len);
unlock:
	up_read(&peers->lock);
	return multicast;
}

void l4lb_sync_sealed(struct l4lb_sync_peers *peers,
		      struct l4lb_sync_message *message, u8 stream)
{
	size_t limit = 0;

	if (!message->sequence) {
		kfree(message);
		return;
	}
	down_read(&peers->lock);
	if (peers->n)
		limit = L4LB_SYNC_KEPT_MAX / peers->n_streams;
	l4lb_sync_ring_put(&peers->rings[stream], message, limit);
	up_read(&peers->lock);
}

/* ---- others ---- */

/* A message that is in no stream; there is room for the trailer. */
static int send_other(struct l4lb_sync_peer *peer, u8 *data, size_t len,
		      u16 flags)
{
	struct l4lb_sync_peers *peers = peer->peers;
	struct l4lb_sync_trailer trailer = {
		.sequence	= atomic64_inc_return(&peers->sequence),
		.flags		= flags,
		.stream		= L4LB_SYNC_STREAM_OTHER,
	};

	sign(peers, &trailer);
	len = l4lb_sync_trailer_put(data, len, &trailer);
	l4lb_sync_sign(&peers->keys, data, len);
	return l4lb_sync_peer_transmit(peer, data, len);
}

int l4lb_sync_peer_send(struct l4lb_sync_peer *peer,
			enum l4lb_sync_control_type type, u8 *data,
			size_t body_len)
{
	size_t len = l4lb_sync_control_put(data, type, body_len);

	return send_other(peer, data, len, L4LB_SYNC_T_CONTROL);
}

int l4lb_sync_peer_send_bulk(struct l4lb_sync_peer *peer, u8 *data, size_t len)
{
	return send_other(peer, data, len, L4LB_SYNC_T_BULK);
}

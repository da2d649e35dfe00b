/* SPDX-License-Identifier: GPL-2.0 */
/* Messages leave for peers. */
#ifndef _L4LB_SYNC_OUTLET_H
#define _L4LB_SYNC_OUTLET_H

#include "sync/peer.h"

/* Process context. */

/**
 * l4lb_sync_seal() - give a message its trailer, and send it to all peers
 * @peers: of the namespace
 * @message: a finished message of @stream's thread
 * @stream: number of the thread
 * @len: bytes of @message; set to those with the trailer
 *
 * Without peers and keys, nothing happens.  Call l4lb_sync_sealed() afterwards.
 *
 * Return: does it go to the group, too?
 */
bool l4lb_sync_seal(struct l4lb_sync_peers *peers,
		    struct l4lb_sync_message *message, u8 stream, size_t *len);
/* Keep the message to send it again, or free it. */
void l4lb_sync_sealed(struct l4lb_sync_peers *peers,
		      struct l4lb_sync_message *message, u8 stream);

/* The following: @peer->peers->lock held. */

/* Send bytes that have been signed.  0 or a negative errno; -EAGAIN: the socket
 * has no room now.
 */
int l4lb_sync_peer_transmit(struct l4lb_sync_peer *peer, u8 *data, size_t len);

/* Send a control message; @data has its body at %L4LB_SYNC_BODY_AT and room for
 * %L4LB_SYNC_CONTROL_MAX bytes.
 */
int l4lb_sync_peer_send(struct l4lb_sync_peer *peer,
			enum l4lb_sync_control_type type, u8 *data,
			size_t body_len);

/* Send a finished message with records; there is room for the trailer. */
int l4lb_sync_peer_send_bulk(struct l4lb_sync_peer *peer, u8 *data,
			     size_t len);

#endif /* _L4LB_SYNC_OUTLET_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Messages that did not come are asked for, and sent again. */
#ifndef _L4LB_SYNC_NACK_H
#define _L4LB_SYNC_NACK_H

#include "sync/peer.h"

/* @peers->lock held. */

/* Ask for what is missing since the last call, at most ten times a second.
 * Returns whether anything is missing.
 */
bool l4lb_sync_nack_send(struct l4lb_sync_peer *peer);
/* The peer asks for messages. */
void l4lb_sync_nack_take(struct l4lb_sync_peer *peer, const u8 *body,
			 size_t len);

#endif /* _L4LB_SYNC_NACK_H */

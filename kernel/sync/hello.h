/* SPDX-License-Identifier: GPL-2.0 */
/* Peers tell each other that they live, and what they have sent. */
#ifndef _L4LB_SYNC_HELLO_H
#define _L4LB_SYNC_HELLO_H

#include "sync/peer.h"

/* @peers->state held: */

/* Was it heard within the last 3 seconds? */
bool l4lb_sync_peer_present(const struct l4lb_sync_peer *peer);
enum l4lb_peer_state l4lb_sync_peer_state(const struct l4lb_sync_peer *peer);
/* @n messages of it will not come: all connections must be asked for. */
void l4lb_sync_peer_lost(struct l4lb_sync_peer *peer, u64 n);

/* @peers->lock held, @peers->state not: */

/* A HELLO with the right MAC from the peer's address has come. */
void l4lb_sync_hello_take(struct l4lb_sync_peer *peer,
			  const struct l4lb_sync_trailer *trailer,
			  const u8 *body, size_t len);
void l4lb_sync_hello_send(struct l4lb_sync_peer *peer);

/* @changed is called when a peer's state has changed, once a second at most, with
 * @peers->lock held.  Before there are peers.
 */
void l4lb_sync_hello_listen(void (*changed)(struct l4lb_sync_peer *peer));

/* Any lock may be held: */

/* Something is missing. */
void l4lb_sync_tick_soon(struct l4lb_sync_peers *peers);
/* Work: each second, and each 50 ms while something is missing. */
void l4lb_sync_tick(struct work_struct *work);

#endif /* _L4LB_SYNC_HELLO_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Work that walks connections for other directors, at a limited rate. */
#ifndef _L4LB_SYNC_WALKER_H
#define _L4LB_SYNC_WALKER_H

#include "sync/peer.h"

struct l4lb_sync_walker;

struct l4lb_sync_walker *l4lb_sync_walker_new(struct l4lb_sync_peers *peers);
/* @walker: or NULL.  Waits for the work. */
void l4lb_sync_walker_free(struct l4lb_sync_walker *walker);
/* Nothing wakes it from now on: wait for it. */
void l4lb_sync_walker_stop(struct l4lb_sync_walker *walker);

/* There is something to do.  Any lock may be held. */
void l4lb_sync_walker_wake(struct l4lb_sync_peers *peers);
/* Announce all connections once, in messages of the sending daemon.  -ESRCH:
 * there is none.  May sleep.
 */
int l4lb_sync_push(struct l4lb_sync_peers *peers);

#endif /* _L4LB_SYNC_WALKER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* What a record does. */
#ifndef _L4LB_SYNC_RECEIVE_H
#define _L4LB_SYNC_RECEIVE_H

#include "base/net.h"

/* Takes a datagram for a backup with sync id @id.  May sleep. */
void l4lb_sync_receive(struct l4lb_net *ln, const u8 *data, size_t len, u8 id);

#endif /* _L4LB_SYNC_RECEIVE_H */

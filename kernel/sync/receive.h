/* SPDX-License-Identifier: GPL-2.0 */
/* Messages of other directors. */
#ifndef _L4LB_SYNC_RECEIVE_H
#define _L4LB_SYNC_RECEIVE_H

#include "sync/apply.h"

void l4lb_sync_receive(struct l4lb_net *ln, const u8 *data, size_t len, u8 id,
		       unsigned int how);

#endif /* _L4LB_SYNC_RECEIVE_H */

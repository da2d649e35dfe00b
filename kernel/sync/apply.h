/* SPDX-License-Identifier: GPL-2.0 */
/* What a record of another director does here. */
#ifndef _L4LB_SYNC_APPLY_H
#define _L4LB_SYNC_APPLY_H

#include "base/net.h"
#include "sync/wire.h"

/**
 * enum l4lb_sync_how - how a message came
 * @L4LB_SYNC_LATE_MESSAGE: later ones were applied already, or may have been sent
 * @L4LB_SYNC_IN_STEP: all connections of its sender have come
 * @L4LB_SYNC_ANSWER: it answers a request for all connections, or for some
 * @L4LB_SYNC_LOWER_SENDER: its sender's number is below this director's
 * @L4LB_SYNC_HANDOVER: from a user, who has asked this director for it before: a real
 *	server that is not here, or was removed, gets no connections
 */
enum l4lb_sync_how {
	L4LB_SYNC_LATE_MESSAGE	= 1 << 0,
	L4LB_SYNC_IN_STEP	= 1 << 1,
	L4LB_SYNC_ANSWER	= 1 << 2,
	L4LB_SYNC_LOWER_SENDER	= 1 << 3,
	L4LB_SYNC_HANDOVER	= 1 << 4,
};

int l4lb_sync_apply(struct l4lb_net *ln, const struct l4lb_sync_record *record,
		    unsigned int how);

#endif /* _L4LB_SYNC_APPLY_H */

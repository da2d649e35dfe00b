/* SPDX-License-Identifier: GPL-2.0 */
/* What a record of another director does here. */
#ifndef _L4LB_SYNC_APPLY_H
#define _L4LB_SYNC_APPLY_H

#include "base/net.h"
#include "sync/wire.h"

void l4lb_sync_apply(struct l4lb_net *ln,
		     const struct l4lb_sync_record *record);

#endif /* _L4LB_SYNC_APPLY_H */

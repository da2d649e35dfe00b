/* SPDX-License-Identifier: GPL-2.0 */
/* Does a batch name anything twice? */
#ifndef _L4LB_BATCH_CHECK_H
#define _L4LB_BATCH_CHECK_H

#include "config/batch.h"

/* No lock needed. */
int l4lb_batch_check(struct l4lb_batch *b, struct netlink_ext_ack *extack);

#endif /* _L4LB_BATCH_CHECK_H */

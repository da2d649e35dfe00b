/* SPDX-License-Identifier: GPL-2.0 */
/* First packets on the fast path. */
#ifndef _L4LB_FAST_NEW_H
#define _L4LB_FAST_NEW_H

#include "base/flow.h"
#include "entry/fast_device.h"

struct l4lb_conn *l4lb_fast_begin(struct sk_buff *skb,
				  const struct l4lb_pkt *pkt,
				  struct l4lb_fast_device *d,
				  unsigned int len);

#endif /* _L4LB_FAST_NEW_H */

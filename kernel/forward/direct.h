/* SPDX-License-Identifier: GPL-2.0 */
/* Forwarding by direct routing; verdicts as in forward.h. */
#ifndef _L4LB_DIRECT_H
#define _L4LB_DIRECT_H

#include "conn/conn.h"

unsigned int l4lb_direct_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn);

#endif /* _L4LB_DIRECT_H */

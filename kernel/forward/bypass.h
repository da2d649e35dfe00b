/* SPDX-License-Identifier: GPL-2.0 */
/* Forwarding past all real servers (cache_bypass); verdicts as in forward.h. */
#ifndef _L4LB_BYPASS_H
#define _L4LB_BYPASS_H

#include "conn/conn.h"

unsigned int l4lb_bypass_xmit(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			      const struct l4lb_conn *conn);

#endif /* _L4LB_BYPASS_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Checksums of what is not forwarded unseen. */
#ifndef _L4LB_CHECKSUM_H
#define _L4LB_CHECKSUM_H

#include "base/flow.h"
#include "base/net.h"

/* Is the error's own checksum right?  If not, that was counted. */
bool l4lb_icmp_checksum_ok(struct sk_buff *skb, const struct l4lb_pkt *pkt,
			   const struct l4lb_net *ln);

#endif /* _L4LB_CHECKSUM_H */

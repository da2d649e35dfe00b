/* SPDX-License-Identifier: GPL-2.0 */
/* First packets on the fast path. */
#ifndef _L4LB_FAST_NEW_H
#define _L4LB_FAST_NEW_H

#include "base/flow.h"
#include "entry/fast_device.h"
#include "entry/fast_headers.h"

/* May the first packet of a service that does not ask for it begin its flow?  Not known
 * yet, no, or yes: see l4lb_fast_unwatched().
 */
enum l4lb_fast_watch {
	L4LB_FAST_UNKNOWN,
	L4LB_FAST_WATCHED,
	L4LB_FAST_UNWATCHED,
};

struct l4lb_service *l4lb_fast_new_service(const struct l4lb_fast_device *d,
					   const struct l4lb_pkt *pkt,
					   enum l4lb_fast_watch watch);
bool l4lb_fast_is_whole(const struct l4lb_fast_view *view,
			const struct l4lb_pkt *pkt, unsigned int len);
struct l4lb_conn *l4lb_fast_new_conn(struct l4lb_service *svc,
				     struct l4lb_fast_device *d,
				     const struct l4lb_pkt *pkt);

struct l4lb_conn *l4lb_fast_begin(struct sk_buff *skb,
				  const struct l4lb_pkt *pkt,
				  struct l4lb_fast_device *d,
				  unsigned int len, enum l4lb_fast_watch watch);

#endif /* _L4LB_FAST_NEW_H */

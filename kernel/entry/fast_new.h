/* SPDX-License-Identifier: GPL-2.0 */
/* First packets on the fast path. */
#ifndef _L4LB_FAST_NEW_H
#define _L4LB_FAST_NEW_H

#include "base/flow.h"
#include "entry/fast_device.h"
#include "entry/fast_headers.h"

/* May the first packet of a service that does not ask for it begin its flow?  Not known
 * yet (only while another service asks for it), no, or yes: see l4lb_fast_unwatched().
 */
enum l4lb_fast_watch {
	L4LB_FAST_UNKNOWN,
	L4LB_FAST_WATCHED,
	L4LB_FAST_UNWATCHED,
};

/**
 * struct l4lb_fast_first - a packet that may begin a connection
 * @skb: the packet at ingress; NULL: it is a frame
 * @view: the frame's packet, all of it linear
 * @len: its length without padding
 * @watch: may it, if its service does not ask for it?
 * @from: the device that the frame came in by
 */
struct l4lb_fast_first {
	struct sk_buff			*skb;
	const struct l4lb_fast_view	*view;
	unsigned int			len;
	enum l4lb_fast_watch		watch;
	const struct net_device		*from;
};

struct l4lb_conn *l4lb_fast_begin(struct l4lb_fast_device *d, const struct l4lb_pkt *pkt,
				  const struct l4lb_fast_first *first);

#endif /* _L4LB_FAST_NEW_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Counting packets that are not forwarded. */
#ifndef _L4LB_DROP_H
#define _L4LB_DROP_H

#include "base/net.h"
#include "base/trace.h"

/* Count a packet that was not forwarded.  Packet context, BH off. */
static inline void l4lb_drop(const struct l4lb_net *ln, enum l4lb_drop reason)
{
	this_cpu_inc(ln->drops[reason]);
	trace_l4lb_drop(ln, reason);
}

#endif /* _L4LB_DROP_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints of packets that are not forwarded.  Names and fields of events are ABI,
 * see doc/watching.md.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM l4lb

#if !defined(_L4LB_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _L4LB_TRACE_H

#include <linux/tracepoint.h>

struct l4lb_net;

/* @reason: enum l4lb_drop */
TRACE_EVENT(l4lb_drop,
	TP_PROTO(const struct l4lb_net *ln, unsigned int reason),
	TP_ARGS(ln, reason),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->netns = ln->net->ns.inum;
		__entry->reason = reason;
	),
	TP_printk("netns=%u reason=%u", __entry->netns, __entry->reason)
);

#endif /* _L4LB_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH base
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

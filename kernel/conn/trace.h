/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints of connections and templates.  Names and fields of events are ABI, see
 * doc/watching.md.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM l4lb

#if !defined(_L4LB_CONN_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _L4LB_CONN_TRACE_H

#include <linux/tracepoint.h>

#include "base/trace_addr.h"

struct l4lb_conn;

/* @why: enum l4lb_end; 0 where it begins */
DECLARE_EVENT_CLASS(l4lb_conn,
	TP_PROTO(const struct l4lb_conn *conn, unsigned int why),
	TP_ARGS(conn, why),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, fwmark)
		__field(u16, af)
		__field(u16, proto)
		__array(u8, caddr, L4LB_TRACE_ADDR_LEN)
		__array(u8, vaddr, L4LB_TRACE_ADDR_LEN)
		__array(u8, daddr, L4LB_TRACE_ADDR_LEN)
		__field(u16, cport)
		__field(u16, vport)
		__field(u16, dport)
		__field(u8, method)
		__field(u8, state)
		__field(u8, why)
		__field(u8, copy)
		__field(u8, template)
		__field(u32, idle_ms)
	),
	TP_fast_assign(
		union nf_inet_addr client = l4lb_conn_client(conn);
		union nf_inet_addr vip = l4lb_conn_vip(conn);
		union nf_inet_addr server = l4lb_conn_server(conn);

		__entry->netns = l4lb_conn_net(conn)->net->ns.inum;
		__entry->fwmark = l4lb_conn_fwmark(conn);
		__entry->af = conn->af;
		__entry->proto = conn->proto;
		l4lb_trace_addr(__entry->caddr, conn->af, &client);
		l4lb_trace_addr(__entry->vaddr, conn->af, &vip);
		l4lb_trace_addr(__entry->daddr, conn->server->sched.af, &server);
		__entry->cport = ntohs(conn->cport);
		__entry->vport = ntohs(conn->vport);
		__entry->dport = ntohs(conn->dport);
		__entry->method = conn->method & IP_VS_CONN_F_FWD_MASK;
		__entry->state = READ_ONCE(conn->state);
		__entry->why = why;
		__entry->copy = l4lb_conn_test(conn, L4LB_CONN_SYNCED);
		__entry->template = l4lb_conn_test(conn, L4LB_CONN_TEMPLATE);
		__entry->idle_ms = jiffies_to_msecs(max(l4lb_conn_idle(conn), 0));
	),
	TP_printk("netns=%u fwmark=%u proto=%u client=%pI6c %u vip=%pI6c %u server=%pI6c %u method=%u state=%u why=%u copy=%u template=%u idle_ms=%u",
		  __entry->netns, __entry->fwmark, __entry->proto,
		  __entry->caddr, __entry->cport, __entry->vaddr, __entry->vport,
		  __entry->daddr, __entry->dport, __entry->method,
		  __entry->state, __entry->why, __entry->copy,
		  __entry->template, __entry->idle_ms)
);

/* It is in the table. */
DEFINE_EVENT(l4lb_conn, l4lb_conn_new,
	TP_PROTO(const struct l4lb_conn *conn, unsigned int why),
	TP_ARGS(conn, why)
);

/* It has left the table. */
DEFINE_EVENT(l4lb_conn, l4lb_conn_end,
	TP_PROTO(const struct l4lb_conn *conn, unsigned int why),
	TP_ARGS(conn, why)
);

#endif /* _L4LB_CONN_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH conn
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints of services: choices of real servers, and what changes.  Names and fields
 * of events are ABI, see doc/watching.md.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM l4lb

#if !defined(_L4LB_SERVICE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _L4LB_SERVICE_TRACE_H

#include <linux/tracepoint.h>

#include "base/trace_addr.h"

struct l4lb_flow;
struct l4lb_happening;
struct l4lb_net;
struct l4lb_server;
struct l4lb_service;

/* A scheduler has chosen @server, or none if that is NULL. */
TRACE_EVENT(l4lb_pick,
	TP_PROTO(const struct l4lb_service *svc, const struct l4lb_flow *flow,
		 const struct l4lb_server *server),
	TP_ARGS(svc, flow, server),
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
		__field(u16, chosen)
		__field(s32, weight)
		__field(s32, active)
		__field(s32, total)
	),
	TP_fast_assign(
		const struct l4lb_sched_server *d = server ? &server->sched : NULL;

		__entry->netns = svc->ln->net->ns.inum;
		__entry->fwmark = svc->key.fwmark;
		__entry->af = flow->af;
		__entry->proto = flow->proto;
		l4lb_trace_addr(__entry->caddr, flow->af, &flow->saddr);
		l4lb_trace_addr(__entry->vaddr, flow->af, &flow->daddr);
		if (d)
			l4lb_trace_addr(__entry->daddr, d->af, &d->addr);
		else
			memset(__entry->daddr, 0, L4LB_TRACE_ADDR_LEN);
		__entry->cport = ntohs(flow->sport);
		__entry->vport = ntohs(flow->dport);
		__entry->dport = d ? ntohs(d->port) : 0;
		__entry->chosen = !!d;
		__entry->weight = d ? READ_ONCE(d->weight) : 0;
		__entry->active = d ? atomic_read(&d->active) : 0;
		__entry->total = d ? atomic_read(&d->total) : 0;
	),
	TP_printk("netns=%u fwmark=%u proto=%u client=%pI6c %u vip=%pI6c %u server=%pI6c %u chosen=%u weight=%d active=%d total=%d",
		  __entry->netns, __entry->fwmark, __entry->proto,
		  __entry->caddr, __entry->cport, __entry->vaddr, __entry->vport,
		  __entry->daddr, __entry->dport, __entry->chosen,
		  __entry->weight, __entry->active, __entry->total)
);

/* The scheduler of @svc has a new set of @n real servers to choose from. */
TRACE_EVENT(l4lb_pool,
	TP_PROTO(const struct l4lb_service *svc, unsigned int n),
	TP_ARGS(svc, n),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, fwmark)
		__field(u16, af)
		__field(u16, proto)
		__array(u8, vaddr, L4LB_TRACE_ADDR_LEN)
		__field(u16, vport)
		__field(u32, n)
		__field(u16, prefix_len)
		__field(u16, last_port)
	),
	TP_fast_assign(
		__entry->netns = svc->ln->net->ns.inum;
		__entry->fwmark = svc->key.fwmark;
		__entry->af = svc->key.af;
		__entry->proto = svc->key.protocol;
		l4lb_trace_addr(__entry->vaddr, svc->key.af, &svc->key.addr);
		__entry->vport = ntohs(svc->key.port);
		__entry->n = n;
		__entry->prefix_len = svc->key.prefix_len;
		__entry->last_port = ntohs(svc->key.last_port);
	),
	TP_printk("netns=%u fwmark=%u proto=%u vip=%pI6c %u n=%u prefix_len=%u last_port=%u",
		  __entry->netns, __entry->fwmark, __entry->proto,
		  __entry->vaddr, __entry->vport, __entry->n,
		  __entry->prefix_len, __entry->last_port)
);

/* What `ipvsctl monitor` shows, also where nobody listens. */
TRACE_EVENT(l4lb_event,
	TP_PROTO(const struct l4lb_net *ln, const struct l4lb_happening *event),
	TP_ARGS(ln, event),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, what)
		__field(u64, count)
		__field(u32, fwmark)
		__field(u16, af)
		__field(u16, proto)
		__array(u8, vaddr, L4LB_TRACE_ADDR_LEN)
		__array(u8, daddr, L4LB_TRACE_ADDR_LEN)
		__field(u16, vport)
		__field(u16, dport)
		__field(u16, prefix_len)
		__field(u16, last_port)
	),
	TP_fast_assign(
		const struct l4lb_server *server = event->server;
		const struct l4lb_svc_key *key =
			event->svc ? &event->svc->key :
			server ? &server->name.svc : NULL;

		__entry->netns = ln->net->ns.inum;
		__entry->what = event->what;
		__entry->count = event->count;
		__entry->fwmark = key ? key->fwmark : 0;
		__entry->af = key ? key->af : 0;
		__entry->proto = key ? key->protocol : 0;
		memset(__entry->vaddr, 0, L4LB_TRACE_ADDR_LEN);
		memset(__entry->daddr, 0, L4LB_TRACE_ADDR_LEN);
		if (key)
			l4lb_trace_addr(__entry->vaddr, key->af, &key->addr);
		if (server)
			l4lb_trace_addr(__entry->daddr, server->sched.af,
					&server->sched.addr);
		__entry->vport = key ? ntohs(key->port) : 0;
		__entry->dport = server ? ntohs(server->sched.port) : 0;
		__entry->prefix_len = key ? key->prefix_len : 0;
		__entry->last_port = key ? ntohs(key->last_port) : 0;
	),
	TP_printk("netns=%u what=%u count=%llu fwmark=%u proto=%u vip=%pI6c %u server=%pI6c %u prefix_len=%u last_port=%u",
		  __entry->netns, __entry->what, __entry->count,
		  __entry->fwmark, __entry->proto,
		  __entry->vaddr, __entry->vport, __entry->daddr, __entry->dport,
		  __entry->prefix_len, __entry->last_port)
);

#endif /* _L4LB_SERVICE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH service
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

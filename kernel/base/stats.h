/* SPDX-License-Identifier: GPL-2.0 */
/* Traffic counters per real server, service and namespace; drop reasons. */
#ifndef _L4LB_STATS_H
#define _L4LB_STATS_H

#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/u64_stats_sync.h>

struct l4lb_net;

/* One CPU's share of the counters; written only by that CPU with BH off. */
struct l4lb_stats_cpu {
	u64_stats_t		conns;
	u64_stats_t		inpkts;
	u64_stats_t		outpkts;
	u64_stats_t		inbytes;
	u64_stats_t		outbytes;
	struct u64_stats_sync	syncp;
};

struct l4lb_counters {
	u64	conns;
	u64	inpkts;
	u64	outpkts;
	u64	inbytes;
	u64	outbytes;
};

/**
 * struct l4lb_stats - counters of one object and their rates
 * @cpu: live counters; of a real server: from its first packet on
 * @due: of a real server: jiffies when a packet looks again whether its interval,
 *	its service's or its namespace's has ended; never later than any of them
 * @lock: taken to change anything below; packets only try to
 * @seq: for readers, who take no lock
 * @phase: jiffies between a multiple of the interval and the end of one
 * @end: jiffies when the interval that is not yet in the rates ends
 * @tried: jiffies when there was last no memory for @cpu
 * @early: packets that were counted without memory for @cpu
 * @frozen: readers see @last instead of @cpu, and rates stand still
 * @zero: counter values at the last ZERO command; readers see the difference
 * @last: counter values at the end of the last interval
 * @rate: moving averages per second, in 1/1024; conns, pkts and bytes
 */
struct l4lb_stats {
	struct l4lb_stats_cpu __percpu	*cpu;
	unsigned long			due;
	spinlock_t			lock;
	seqcount_spinlock_t		seq;
	unsigned int			phase;
	unsigned long			end;
	bool				frozen;
	unsigned long			tried;
	struct l4lb_counters		early;
	struct l4lb_counters		zero;
	struct l4lb_counters		last;
	struct l4lb_counters		rate;
};

/* What a reader sees: counters since the last ZERO, rates per second. */
struct l4lb_stats_view {
	struct l4lb_counters	count;
	struct l4lb_counters	rate;
};

enum l4lb_stats_event { L4LB_STATS_CONN, L4LB_STATS_IN, L4LB_STATS_OUT };

int l4lb_stats_init(struct l4lb_stats *stats, bool frozen);
/* Without per-CPU memory, which l4lb_stats_begin() allocates, if it can be late. */
int l4lb_stats_init_late(struct l4lb_stats *stats, bool frozen);
void l4lb_stats_destroy(struct l4lb_stats *stats);
void l4lb_stats_read(const struct l4lb_stats *stats,
		     struct l4lb_stats_view *view);
void l4lb_stats_read_cpu(const struct l4lb_stats *stats, int cpu,
			 struct l4lb_counters *count);
void l4lb_stats_inherit(struct l4lb_stats *stats, struct l4lb_stats *old);
void l4lb_stats_zero(struct l4lb_stats *stats);
void l4lb_stats_freeze(struct l4lb_stats *stats, bool frozen);

/* Packet context, BH off; ends the interval if it is over.  Return: the end of
 * the present one, in the past if another CPU is just ending it.
 */
unsigned long l4lb_stats_end_interval(struct l4lb_stats *stats);

/* Packet context, BH off; call it before a packet is counted in late stats.  Return:
 * true if they have counters now; false without memory, and the packet is counted.
 */
bool l4lb_stats_begin(struct l4lb_stats *stats, enum l4lb_stats_event event,
		      unsigned int len);

/* The next packet shall look for intervals that have ended. */
static inline void l4lb_stats_look(struct l4lb_stats *stats)
{
	WRITE_ONCE(stats->due, jiffies);
}

static inline bool l4lb_stats_due(const struct l4lb_stats *stats)
{
	/* Before .cpu and jiffies are read. */
	unsigned long due = smp_load_acquire(&stats->due);

	return unlikely(time_after_eq(jiffies, due));
}

static __always_inline void l4lb_stats_count(struct l4lb_stats *stats,
					     enum l4lb_stats_event event,
					     unsigned int len)
{
	struct l4lb_stats_cpu *s = this_cpu_ptr(READ_ONCE(stats->cpu));

	u64_stats_update_begin(&s->syncp);
	if (event == L4LB_STATS_CONN) {
		u64_stats_inc(&s->conns);
	} else if (event == L4LB_STATS_IN) {
		u64_stats_inc(&s->inpkts);
		u64_stats_add(&s->inbytes, len);
	} else {
		u64_stats_inc(&s->outpkts);
		u64_stats_add(&s->outbytes, len);
	}
	u64_stats_update_end(&s->syncp);
}

/* Reasons why a packet was not forwarded; names are in stats.c.  The order is
 * ABI (/proc/net/l4lb): only ever append.
 */
enum l4lb_drop {
	L4LB_DROP_HEADER,	/* malformed or truncated L3/L4 header */
	L4LB_DROP_CHECKSUM,	/* bad L4 or ICMP checksum */
	L4LB_DROP_NO_DEST,	/* the scheduler found no real server */
	L4LB_DROP_DEST_GONE,	/* connection's real server was removed */
	L4LB_DROP_NO_ROUTE,	/* no route to the real server */
	L4LB_DROP_TTL,		/* TTL or hop limit used up */
	L4LB_DROP_TOO_BIG,	/* larger than the path's MTU, sender told */
	L4LB_DROP_MEMORY,	/* out of memory */
	L4LB_DROP_FRAGMENT,	/* a reply could not be reassembled */
	L4LB_DROP_MARTIAN,	/* loopback real server, packet from outside */
	L4LB_DROP_PACKET,	/* new flow, dropped by drop_packet */
	L4LB_DROP_ENTRY,	/* connections, not packets: drop_entry */
	L4LB_DROP_GUARD,	/* for a guarded address, but no service */
	L4LB_DROP_FULL,		/* new flow, at conn_max connections */
	L4LB_DROP_EVICTED,	/* connections, not packets: to make room */
	L4LB_DROP_SAME_REPLIES,	/* new flow, its replies are like many others' */
	L4LB_DROP_LIMIT,	/* new flow, beyond a limit of its service */
	L4LB_DROP_NO_CALL_ID,	/* new flow of a service with engine sip */
	L4LB_DROP_NO_PORT,	/* new flow, with full NAT: its ports are taken */
	L4LB_DROP_MAX
};

/* Packets that the fast path forwarded, or the reason why it left them to the
 * stack.  Names and order: as above.
 */
enum l4lb_fast_count {
	L4LB_FAST_SENT,		/* forwarded by the fast path */
	L4LB_SLOW_PROTOCOL,	/* neither TCP nor UDP */
	L4LB_SLOW_HEADER,	/* fragment, options, TTL, tag, odd GSO, ... */
	L4LB_SLOW_UNKNOWN,	/* without a connection */
	L4LB_SLOW_SERVER,	/* real server removed, draining or local; full NAT */
	L4LB_SLOW_POLICY,	/* fast path off, or flow in conntrack */
	L4LB_SLOW_OPENS,	/* asks for a new connection */
	L4LB_SLOW_ADMIT,	/* flow not admitted, or not any more */
	L4LB_SLOW_ROUTE,	/* local, no neighbour yet, too big, IPsec, ... */
	L4LB_FAST_XDP,		/* forwarded by XDP, before any skb */
	L4LB_XDP_OFFLOAD,	/* left by XDP: checksum or tag may be hidden */
	L4LB_XDP_EXIT,		/* left by XDP: the way out takes no frames */
	L4LB_FAST_MAX
};

const char *l4lb_fast_name(enum l4lb_fast_count count);
u64 l4lb_fast_read(const struct l4lb_net *ln, enum l4lb_fast_count count);
const char *l4lb_drop_name(enum l4lb_drop reason);
u64 l4lb_drop_read(const struct l4lb_net *ln, enum l4lb_drop reason);

/* Sum over all CPUs of element @i of a per-CPU array. */
u64 l4lb_percpu_sum(const u64 __percpu *counters, unsigned int i);

#endif /* _L4LB_STATS_H */

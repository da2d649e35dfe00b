// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic counters, their rates, and counters of drop reasons.
 *
 * Counters only ever grow; ZERO stores their present values.  The rate of each
 * interval of two seconds moves the average a quarter of the way, so an average
 * forgets half of a burst in about five seconds.
 *
 * No timer runs every two seconds.  The first packet after an interval, before
 * it is counted, closes that interval and any idle ones since: everything
 * counted since the last close belongs to the first of them.  Readers compute
 * the same result without closing anything.
 *
 * The intervals of different objects end at different times, so that no packet
 * meets them all.  A packet checks one time only: the real server's .due, which
 * is the earliest end of its own, its service's and its namespace's interval.
 *
 * Packets do not wait for each other here, and readers take no lock: anybody may
 * read /proc/net/ip_vs_stats all the time.
 *
 * There may be many more real servers than ever get a packet, on many CPUs.  So a
 * real server's counters are allocated late, by its first packet: until then they
 * are those of nobody, and .due is never in the future.  Without memory for them
 * that packet is counted under the lock, and the next one tries again.
 */
#include "base/stats.h"
#include "base/net.h"

#include <linux/math.h>
#include <linux/sched.h>

#define INTERVAL_SECONDS	2
#define INTERVAL	(INTERVAL_SECONDS * HZ)
#define PHASES		50	/* times at which intervals end */
#define RATE_SHIFT	10	/* rates are kept in 1/1024 */

/* ---- counters ---- */

/* The end, in jiffies, of the interval that contains @now. */
static unsigned long interval_end(const struct l4lb_stats *stats,
				  unsigned long now)
{
	return now - (now - stats->phase) % INTERVAL + INTERVAL;
}

/* Packets add to these what nobody reads. */
static DEFINE_PER_CPU(struct l4lb_stats_cpu, of_nobody);

static bool is_late(const struct l4lb_stats *stats)
{
	return READ_ONCE(stats->cpu) == &of_nobody;
}

static struct l4lb_stats_cpu __percpu *cpu_alloc(gfp_t gfp)
{
	struct l4lb_stats_cpu __percpu *counters;
	int cpu;

	counters = alloc_percpu_gfp(struct l4lb_stats_cpu, gfp);
	if (counters)
		for_each_possible_cpu(cpu)
			u64_stats_init(&per_cpu_ptr(counters, cpu)->syncp);
	return counters;
}

static void stats_init(struct l4lb_stats *stats, bool frozen)
{
	static atomic_t objects = ATOMIC_INIT(0);

	memset(stats, 0, sizeof(*stats));
	spin_lock_init(&stats->lock);
	seqcount_spinlock_init(&stats->seq, &stats->lock);
	stats->phase = (u32)atomic_inc_return(&objects) % PHASES * INTERVAL /
		       PHASES;
	stats->end = interval_end(stats, jiffies);
	stats->due = jiffies;
	stats->frozen = frozen;
	stats->cpu = &of_nobody;
}

int l4lb_stats_init(struct l4lb_stats *stats, bool frozen)
{
	stats_init(stats, frozen);
	stats->cpu = cpu_alloc(GFP_KERNEL_ACCOUNT);
	return stats->cpu ? 0 : -ENOMEM;
}

int l4lb_stats_init_late(struct l4lb_stats *stats, bool frozen)
{
	/* A .due of weeks ago is in the future where jiffies have 32 bits. */
	if (!IS_ENABLED(CONFIG_64BIT))
		return l4lb_stats_init(stats, frozen);
	stats_init(stats, frozen);
	return 0;
}

/* Context: any, when no reader is left. */
void l4lb_stats_destroy(struct l4lb_stats *stats)
{
	if (!is_late(stats))
		free_percpu(stats->cpu);
	stats->cpu = NULL;
}

static void read_cpu(const struct l4lb_stats_cpu __percpu *counters, int cpu,
		     struct l4lb_counters *count)
{
	const struct l4lb_stats_cpu *s = per_cpu_ptr(counters, cpu);
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&s->syncp);
		count->conns = u64_stats_read(&s->conns);
		count->inpkts = u64_stats_read(&s->inpkts);
		count->outpkts = u64_stats_read(&s->outpkts);
		count->inbytes = u64_stats_read(&s->inbytes);
		count->outbytes = u64_stats_read(&s->outbytes);
	} while (u64_stats_fetch_retry(&s->syncp, start));
}

/* One CPU's counters since the object's creation; ZERO does not change them. */
void l4lb_stats_read_cpu(const struct l4lb_stats *stats, int cpu,
			 struct l4lb_counters *count)
{
	read_cpu(READ_ONCE(stats->cpu), cpu, count);
}

static void stats_sum(const struct l4lb_stats *stats,
		      struct l4lb_counters *sum)
{
	const struct l4lb_stats_cpu __percpu *counters = READ_ONCE(stats->cpu);
	struct l4lb_counters one;
	int cpu;

	*sum = stats->early;
	if (counters == &of_nobody)
		return;
	for_each_possible_cpu(cpu) {
		read_cpu(counters, cpu, &one);
		sum->conns += one.conns;
		sum->inpkts += one.inpkts;
		sum->outpkts += one.outpkts;
		sum->inbytes += one.inbytes;
		sum->outbytes += one.outbytes;
	}
}

/* ---- rates ---- */

/* The average after one interval with a count of @count and @idle further
 * intervals without any.
 */
static u64 rate_after(u64 rate, u64 count, unsigned long idle)
{
	u64 current_rate = (count << RATE_SHIFT) / INTERVAL_SECONDS;

	rate += (s64)(current_rate - rate) >> 2;
	while (idle-- && rate)
		rate -= DIV_ROUND_UP(rate, 4);
	return rate;
}

/* The averages after the last interval that is over.  @sum: the counters now.
 * Lock held, or in a section of readers.
 * Return: false if no interval has ended, or the rates are frozen.
 */
static bool rate_now(const struct l4lb_stats *stats,
		     const struct l4lb_counters *sum,
		     struct l4lb_counters *rate)
{
	const struct l4lb_counters *last = &stats->last;
	unsigned long now = jiffies, end = READ_ONCE(stats->end), idle;

	*rate = stats->rate;
	if (stats->frozen || time_before(now, end))
		return false;
	idle = (now - end) / INTERVAL;
	rate->conns = rate_after(rate->conns, sum->conns - last->conns, idle);
	rate->inpkts = rate_after(rate->inpkts, sum->inpkts - last->inpkts,
				  idle);
	rate->outpkts = rate_after(rate->outpkts, sum->outpkts - last->outpkts,
				   idle);
	rate->inbytes = rate_after(rate->inbytes, sum->inbytes - last->inbytes,
				   idle);
	rate->outbytes = rate_after(rate->outbytes,
				    sum->outbytes - last->outbytes, idle);
	return true;
}

static void stats_catch_up(struct l4lb_stats *stats,
			   const struct l4lb_counters *sum)
{
	struct l4lb_counters rate;

	lockdep_assert_held(&stats->lock);
	if (rate_now(stats, sum, &rate)) {
		stats->rate = rate;
		stats->last = *sum;
	}
	WRITE_ONCE(stats->end, interval_end(stats, jiffies));
}

static void end_interval(struct l4lb_stats *stats)
{
	struct l4lb_counters sum;

	stats_sum(stats, &sum);
	write_seqcount_begin(&stats->seq);
	stats_catch_up(stats, &sum);
	write_seqcount_end(&stats->seq);
}

unsigned long l4lb_stats_end_interval(struct l4lb_stats *stats)
{
	if (time_after_eq(jiffies, READ_ONCE(stats->end)) &&
	    spin_trylock(&stats->lock)) {
		if (time_after_eq(jiffies, stats->end))
			end_interval(stats);
		spin_unlock(&stats->lock);
	}
	return READ_ONCE(stats->end);
}

static void count_early(struct l4lb_counters *early,
			enum l4lb_stats_event event, unsigned int len)
{
	early->conns += event == L4LB_STATS_CONN;
	early->inpkts += event == L4LB_STATS_IN;
	early->outpkts += event == L4LB_STATS_OUT;
	early->inbytes += event == L4LB_STATS_IN ? len : 0;
	early->outbytes += event == L4LB_STATS_OUT ? len : 0;
}

bool l4lb_stats_begin(struct l4lb_stats *stats, enum l4lb_stats_event event,
		      unsigned int len)
{
	struct l4lb_stats_cpu __percpu *counters = NULL;
	bool begun;

	if (likely(!is_late(stats)))
		return true;
	/* Without memory, each packet would search for some under a lock of all. */
	if (time_after(jiffies, READ_ONCE(stats->tried)))
		counters = cpu_alloc(GFP_ATOMIC | __GFP_NOWARN);
	if (!counters)
		WRITE_ONCE(stats->tried, jiffies);
	spin_lock(&stats->lock);
	if (is_late(stats) && counters) {
		smp_store_release(&stats->cpu, counters);	/* after its zeros */
		counters = NULL;
	}
	begun = !is_late(stats);
	if (!begun) {
		write_seqcount_begin(&stats->seq);
		count_early(&stats->early, event, len);
		write_seqcount_end(&stats->seq);
	}
	spin_unlock(&stats->lock);
	free_percpu(counters);
	return begun;
}

static u64 rate_round(u64 rate)
{
	return (rate + BIT(RATE_SHIFT - 1)) >> RATE_SHIFT;
}

void l4lb_stats_read(const struct l4lb_stats *stats,
		     struct l4lb_stats_view *view)
{
	struct l4lb_counters *count = &view->count, *rate = &view->rate;
	struct l4lb_counters zero;
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&stats->seq);
		stats_sum(stats, count);
		rate_now(stats, count, rate);
		if (stats->frozen)
			*count = stats->last;
		zero = stats->zero;
	} while (read_seqcount_retry(&stats->seq, seq));
	count->conns -= zero.conns;
	count->inpkts -= zero.inpkts;
	count->outpkts -= zero.outpkts;
	count->inbytes -= zero.inbytes;
	count->outbytes -= zero.outbytes;
	rate->conns = rate_round(rate->conns);
	rate->inpkts = rate_round(rate->inpkts);
	rate->outpkts = rate_round(rate->outpkts);
	rate->inbytes = rate_round(rate->inbytes);
	rate->outbytes = rate_round(rate->outbytes);
}

/* @stats, unused so far, go on from those of @old, where nothing is counted any
 * more.
 */
void l4lb_stats_inherit(struct l4lb_stats *stats, struct l4lb_stats *old)
{
	spin_lock_bh(&old->lock);
	write_seqcount_begin(&old->seq);
	swap(stats->cpu, old->cpu);
	stats->early = old->early;
	stats->zero = old->zero;
	stats->last = old->last;
	stats->rate = old->rate;
	stats->frozen = old->frozen;
	stats->phase = old->phase;
	stats->end = old->end;
	write_seqcount_end(&old->seq);
	spin_unlock_bh(&old->lock);
	l4lb_stats_look(stats);
}

void l4lb_stats_zero(struct l4lb_stats *stats)
{
	struct l4lb_counters sum;

	spin_lock_bh(&stats->lock);
	stats_sum(stats, &sum);
	write_seqcount_begin(&stats->seq);
	stats->zero = sum;
	stats->last = sum;
	memset(&stats->rate, 0, sizeof(stats->rate));
	write_seqcount_end(&stats->seq);
	spin_unlock_bh(&stats->lock);
}

/* Counts from the frozen time do not affect the averages afterwards. */
void l4lb_stats_freeze(struct l4lb_stats *stats, bool frozen)
{
	struct l4lb_counters sum;

	spin_lock_bh(&stats->lock);
	if (stats->frozen != frozen) {
		stats_sum(stats, &sum);
		write_seqcount_begin(&stats->seq);
		stats_catch_up(stats, &sum);
		stats->last = sum;
		stats->frozen = frozen;
		write_seqcount_end(&stats->seq);
	}
	spin_unlock_bh(&stats->lock);
}

/* ---- drop reasons ---- */

static const char *const drop_names[] = {
	[L4LB_DROP_HEADER]	= "header",
	[L4LB_DROP_CHECKSUM]	= "checksum",
	[L4LB_DROP_NO_DEST]	= "no_dest",
	[L4LB_DROP_DEST_GONE]	= "dest_gone",
	[L4LB_DROP_NO_ROUTE]	= "no_route",
	[L4LB_DROP_TTL]		= "ttl",
	[L4LB_DROP_TOO_BIG]	= "too_big",
	[L4LB_DROP_MEMORY]	= "memory",
	[L4LB_DROP_FRAGMENT]	= "fragment",
	[L4LB_DROP_MARTIAN]	= "martian",
	[L4LB_DROP_PACKET]	= "drop_packet",
	[L4LB_DROP_ENTRY]	= "drop_entry",
	[L4LB_DROP_GUARD]	= "guard",
	[L4LB_DROP_FULL]	= "full",
	[L4LB_DROP_EVICTED]	= "evicted",
	[L4LB_DROP_SAME_REPLIES] = "same_replies",
	[L4LB_DROP_LIMIT]	= "limit",
	[L4LB_DROP_NO_CALL_ID]	= "no_call_id",
	[L4LB_DROP_NO_PORT]	= "no_port",
};

static_assert(ARRAY_SIZE(drop_names) == L4LB_DROP_MAX);

/* ---- the fast path ---- */

static const char *const fast_names[] = {
	[L4LB_FAST_SENT]	= "fast",
	[L4LB_SLOW_PROTOCOL]	= "slow_protocol",
	[L4LB_SLOW_HEADER]	= "slow_header",
	[L4LB_SLOW_UNKNOWN]	= "slow_unknown",
	[L4LB_SLOW_SERVER]	= "slow_server",
	[L4LB_SLOW_POLICY]	= "slow_policy",
	[L4LB_SLOW_OPENS]	= "slow_opens",
	[L4LB_SLOW_ADMIT]	= "slow_admit",
	[L4LB_SLOW_ROUTE]	= "slow_route",
	[L4LB_FAST_XDP]		= "xdp",
	[L4LB_XDP_OFFLOAD]	= "xdp_offload",
	[L4LB_XDP_EXIT]		= "xdp_exit",
};

static_assert(ARRAY_SIZE(fast_names) == L4LB_FAST_MAX);

u64 l4lb_percpu_sum(const u64 __percpu *counters, unsigned int i)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(counters, cpu)[i]);
	return sum;
}

const char *l4lb_fast_name(enum l4lb_fast_count count)
{
	return fast_names[count];
}

u64 l4lb_fast_read(const struct l4lb_net *ln, enum l4lb_fast_count count)
{
	return l4lb_percpu_sum(ln->fast_counts, count);
}

const char *l4lb_drop_name(enum l4lb_drop reason)
{
	return drop_names[reason];
}

u64 l4lb_drop_read(const struct l4lb_net *ln, enum l4lb_drop reason)
{
	return l4lb_percpu_sum(ln->drops, reason);
}

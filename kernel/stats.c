// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic counters, their rates, and why packets were dropped.
 *
 * Counters only ever grow; ZERO remembers where they stood.  Every two
 * seconds the rate of the last two seconds moves the average a quarter of the
 * way, so an average forgets half of a burst in about five seconds.
 */
#include "stats.h"
#include "dest.h"

#include <linux/rculist.h>

#define EST_SECONDS	2
#define EST_SHIFT	10	/* rates are kept in 1/1024 */

/* ---- counters ---- */

int l4lb_stats_init(struct l4lb_stats *stats)
{
	int cpu;

	memset(stats, 0, sizeof(*stats));
	spin_lock_init(&stats->lock);
	stats->cpu = alloc_percpu(struct l4lb_stats_cpu);
	if (!stats->cpu)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		u64_stats_init(&per_cpu_ptr(stats->cpu, cpu)->syncp);
	return 0;
}

/* Any context in which no reader is left. */
void l4lb_stats_destroy(struct l4lb_stats *stats)
{
	free_percpu(stats->cpu);
	stats->cpu = NULL;
}

/* One CPU's share since it exists; ZERO does not show here. */
void l4lb_stats_read_cpu(const struct l4lb_stats *stats, int cpu,
			 struct l4lb_counters *count)
{
	const struct l4lb_stats_cpu *s = per_cpu_ptr(stats->cpu, cpu);
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

static void stats_sum(const struct l4lb_stats *stats,
		      struct l4lb_counters *sum)
{
	struct l4lb_counters one;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		l4lb_stats_read_cpu(stats, cpu, &one);
		sum->conns += one.conns;
		sum->inpkts += one.inpkts;
		sum->outpkts += one.outpkts;
		sum->inbytes += one.inbytes;
		sum->outbytes += one.outbytes;
	}
}

static u64 rate_round(u64 rate)
{
	return (rate + BIT(EST_SHIFT - 1)) >> EST_SHIFT;
}

void l4lb_stats_read(struct l4lb_stats *stats, struct l4lb_stats_view *view)
{
	struct l4lb_counters *count = &view->count, *rate = &view->rate;

	stats_sum(stats, count);
	spin_lock_bh(&stats->lock);
	count->conns -= stats->zero.conns;
	count->inpkts -= stats->zero.inpkts;
	count->outpkts -= stats->zero.outpkts;
	count->inbytes -= stats->zero.inbytes;
	count->outbytes -= stats->zero.outbytes;
	rate->conns = rate_round(stats->rate.conns);
	rate->inpkts = rate_round(stats->rate.inpkts);
	rate->outpkts = rate_round(stats->rate.outpkts);
	rate->inbytes = rate_round(stats->rate.inbytes);
	rate->outbytes = rate_round(stats->rate.outbytes);
	spin_unlock_bh(&stats->lock);
}

void l4lb_stats_zero(struct l4lb_stats *stats)
{
	spin_lock_bh(&stats->lock);
	stats_sum(stats, &stats->zero);
	stats->last = stats->zero;
	memset(&stats->rate, 0, sizeof(stats->rate));
	spin_unlock_bh(&stats->lock);
}

/* ---- rates ---- */

static void rate_update(u64 *rate, u64 *last, u64 now)
{
	u64 current_rate = ((now - *last) << EST_SHIFT) / EST_SECONDS;

	*last = now;
	*rate += (s64)(current_rate - *rate) >> 2;
}

static void stats_estimate(struct l4lb_stats *stats)
{
	struct l4lb_counters *rate = &stats->rate, *last = &stats->last;
	struct l4lb_counters now;

	spin_lock_bh(&stats->lock);
	stats_sum(stats, &now);
	rate_update(&rate->conns, &last->conns, now.conns);
	rate_update(&rate->inpkts, &last->inpkts, now.inpkts);
	rate_update(&rate->outpkts, &last->outpkts, now.outpkts);
	rate_update(&rate->inbytes, &last->inbytes, now.inbytes);
	rate_update(&rate->outbytes, &last->outbytes, now.outbytes);
	spin_unlock_bh(&stats->lock);
}

/* Stops by itself with the last service. */
static void estimate(struct work_struct *work)
{
	struct l4lb_net *ln = container_of(to_delayed_work(work),
					   struct l4lb_net, est_work);
	struct l4lb_service *svc;
	struct l4lb_real *real;

	mutex_lock(&ln->lock);
	if (list_empty(&ln->services))
		goto out;
	l4lb_estimator_start(ln);
	stats_estimate(&ln->stats);
	list_for_each_entry(svc, &ln->services, list) {
		stats_estimate(&svc->stats);
		list_for_each_entry(real, &svc->dests, node)
			stats_estimate(&real->stats);
		cond_resched();
	}
out:
	mutex_unlock(&ln->lock);
}

void l4lb_estimator_init(struct l4lb_net *ln)
{
	INIT_DELAYED_WORK(&ln->est_work, estimate);
}

/* Two seconds from now.  Configuration mutex held. */
void l4lb_estimator_start(struct l4lb_net *ln)
{
	queue_delayed_work(system_power_efficient_wq, &ln->est_work,
			   EST_SECONDS * HZ);
}

/* Configuration mutex held, which the work takes: it may still run once. */
void l4lb_estimator_stop(struct l4lb_net *ln)
{
	cancel_delayed_work(&ln->est_work);
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
};

static_assert(ARRAY_SIZE(drop_names) == L4LB_DROP_MAX);

const char *l4lb_drop_name(enum l4lb_drop reason)
{
	return drop_names[reason];
}

u64 l4lb_drop_read(const struct l4lb_net *ln, enum l4lb_drop reason)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(ln->drops, cpu)[reason]);
	return sum;
}

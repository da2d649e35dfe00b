// SPDX-License-Identifier: GPL-2.0
/*
 * Histograms of what real servers take to answer: their buckets double, so that one
 * of 28 numbers tells a microsecond from a minute.
 *
 * Most real servers are never measured.  Those of a service that measures get counters
 * when they are added, or when it begins.  If there was no memory then, the first sample
 * tries again, in packet context; conn/latency.c says what a sample is.
 */
#include "service/latency.h"

#include <linux/bitops.h>
#include <linux/slab.h>

static struct l4lb_latency *latency_alloc(gfp_t gfp)
{
	struct l4lb_latency *latency;
	int cpu;

	latency = kzalloc(sizeof(*latency), gfp | __GFP_NOWARN);
	if (!latency)
		return NULL;
	latency->cpu = alloc_percpu_gfp(struct l4lb_latency_cpu, gfp | __GFP_NOWARN);
	if (!latency->cpu) {
		kfree(latency);
		return NULL;
	}
	for_each_possible_cpu(cpu)
		u64_stats_init(&per_cpu_ptr(latency->cpu, cpu)->syncp);
	return latency;
}

static void destroy(struct l4lb_latency *latency)
{
	free_percpu(latency->cpu);
	kfree(latency);
}

/* Its counters, or NULL without memory. */
static struct l4lb_latency *begin(struct l4lb_server *server, gfp_t gfp)
{
	struct l4lb_latency *latency = latency_alloc(gfp), *old;

	if (!latency)
		return NULL;
	/* A full barrier: others find its zeros. */
	old = cmpxchg(&server->latency, NULL, latency);
	if (!old)
		return latency;
	destroy(latency);
	return old;
}

/* Without memory, each sample would search for some under a lock of all: one of a jiffy
 * does.
 */
static struct l4lb_latency *begin_late(struct l4lb_server *server)
{
	if (READ_ONCE(server->latency_tried) == (u32)jiffies)
		return NULL;
	WRITE_ONCE(server->latency_tried, (u32)jiffies);
	return begin(server, GFP_ATOMIC);
}

static struct l4lb_latency *latency_of(struct l4lb_server *server)
{
	/* Pairs with begin(). */
	struct l4lb_latency *latency = smp_load_acquire(&server->latency);

	return likely(latency) ? latency : begin_late(server);
}

static void add(struct l4lb_server *server, enum l4lb_latency_kind kind,
		unsigned int i, u64 microseconds)
{
	struct l4lb_latency *latency = latency_of(server);
	struct l4lb_latency_cpu *c;

	if (unlikely(!latency))
		return;
	c = this_cpu_ptr(latency->cpu);
	u64_stats_update_begin(&c->syncp);
	u64_stats_inc(&c->kind[kind].n[i]);
	u64_stats_add(&c->kind[kind].sum, microseconds);
	u64_stats_update_end(&c->syncp);
}

void l4lb_latency_count(struct l4lb_server *server, enum l4lb_latency_kind kind,
			u64 microseconds)
{
	unsigned int bucket = fls64(microseconds);

	add(server, kind, min(bucket, L4LB_LATENCY_BUCKETS - 1U), microseconds);
}

void l4lb_latency_count_failed(struct l4lb_server *server,
			       enum l4lb_latency_kind kind,
			       enum l4lb_latency_fate fate)
{
	add(server, kind, fate, 0);
}

void l4lb_latency_prepare(struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	if (!READ_ONCE(server->latency) && server->method == IP_VS_CONN_F_MASQ)
		begin(server, GFP_KERNEL_ACCOUNT);
}

/* What one CPU has counted, all of it at one moment. */
static void read_cpu(const struct l4lb_latency_cpu *c,
		     struct l4lb_latency_count count[L4LB_LATENCY_KINDS])
{
	unsigned int kind, i, start;

	do {
		start = u64_stats_fetch_begin(&c->syncp);
		for (kind = 0; kind < L4LB_LATENCY_KINDS; kind++) {
			for (i = 0; i < L4LB_LATENCY_FATES; i++)
				count[kind].n[i] = u64_stats_read(&c->kind[kind].n[i]);
			count[kind].sum = u64_stats_read(&c->kind[kind].sum);
		}
	} while (u64_stats_fetch_retry(&c->syncp, start));
}

static void sum_up(const struct l4lb_latency *latency,
		   struct l4lb_latency_count total[L4LB_LATENCY_KINDS])
{
	struct l4lb_latency_count one[L4LB_LATENCY_KINDS];
	unsigned int kind, i;
	int cpu;

	memset(total, 0, sizeof(one));
	for_each_possible_cpu(cpu) {
		read_cpu(per_cpu_ptr(latency->cpu, cpu), one);
		for (kind = 0; kind < L4LB_LATENCY_KINDS; kind++) {
			for (i = 0; i < L4LB_LATENCY_FATES; i++)
				total[kind].n[i] += one[kind].n[i];
			total[kind].sum += one[kind].sum;
		}
	}
}

bool l4lb_latency_read(const struct l4lb_server *server,
		       struct l4lb_latency_count count[L4LB_LATENCY_KINDS])
{
	/* Pairs with begin(). */
	const struct l4lb_latency *latency = smp_load_acquire(&server->latency);
	unsigned int kind, i;

	lockdep_assert_held(&server->ln->lock);
	if (!latency)
		return false;
	sum_up(latency, count);
	for (kind = 0; kind < L4LB_LATENCY_KINDS; kind++) {
		for (i = 0; i < L4LB_LATENCY_FATES; i++)
			count[kind].n[i] -= latency->zero[kind].n[i];
		count[kind].sum -= latency->zero[kind].sum;
	}
	return true;
}

void l4lb_latency_zero(struct l4lb_server *server)
{
	struct l4lb_latency *latency = smp_load_acquire(&server->latency);	/* begin() */

	lockdep_assert_held(&server->ln->lock);
	if (latency)
		sum_up(latency, latency->zero);
}

void l4lb_latency_free(struct l4lb_server *server)
{
	if (server->latency)
		destroy(server->latency);
}

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
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#define HALF_LIFE	USEC_PER_SEC	/* of an answer in the average */
#define FAILURE		((u64)USEC_PER_SEC) /* failures are as an answer of so long */
#define FAILURES	3		/* without an answer between them */
#define LONGEST		BIT_ULL(32)	/* us; a longer answer counts as one of this */
#define SHIFT		14		/* of the average */

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
	spin_lock_init(&latency->lock);
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

/* ---- the average ---- */

/* What is left of 2^16 after @us, by half each HALF_LIFE; in between along a line. */
static u32 left_after(u64 us)
{
	u32 rest;
	u64 halves = div_u64_rem(us, HALF_LIFE, &rest);

	if (halves > 15)
		return 0;
	return (65536 - (u32)div_u64((u64)rest << 15, HALF_LIFE)) >> halves;
}

/* As l4lb_server_latency() reads it: 11 bits, and how far they are shifted. */
static u16 code_of(u64 us)
{
	unsigned int bits = fls64(us), shift = bits > 11 ? bits - 11 : 0;

	return shift << 11 | us >> shift;
}

/* A shadow's choices change no latency: it goes by those that the real server has. */
static void tell(struct l4lb_server *server, u16 code)
{
	struct l4lb_server *ghost;

	ghost = rcu_dereference_check(server->ghost,
				      lockdep_is_held(&server->ln->lock));
	WRITE_ONCE(server->sched.latency, code);
	if (unlikely(ghost))
		WRITE_ONCE(ghost->sched.latency, code);
}

static void set_average(struct l4lb_server *server, struct l4lb_latency *latency,
			u64 average, u64 now)
{
	lockdep_assert_held(&latency->lock);
	latency->average = average;
	latency->when = now;
	tell(server, code_of(average >> SHIFT) ?: 1);
}

static void take_answer(struct l4lb_server *server, struct l4lb_latency *latency, u64 us)
{
	u64 now = div_u64(ktime_get_ns(), NSEC_PER_USEC);
	u64 sample = min(us, LONGEST) << SHIFT;
	u32 left = latency->when ? left_after(now - latency->when) : 0;

	latency->failures = 0;
	/* It would count nothing: a later one counts for both. */
	if (left == 65536)
		return;
	set_average(server, latency,
		    (latency->average * left + sample * (65536 - left)) >> 16, now);
}

/* Anyone can make a single request fail: only failures without an answer between them
 * say something of the real server.
 */
static void take_failure(struct l4lb_server *server, struct l4lb_latency *latency)
{
	u64 average = min(4 * latency->average, LONGEST << SHIFT);

	if (++latency->failures < FAILURES)
		return;
	latency->failures = 0;
	set_average(server, latency, max(average, FAILURE << SHIFT),
		    div_u64(ktime_get_ns(), NSEC_PER_USEC));
}

/* What comes while another CPU is at it counts in the histogram only.  A service that
 * measures no more has forgotten all, see l4lb_latency_forget().
 */
static void average(struct l4lb_server *server, struct l4lb_latency *latency, u64 us,
		    bool failed)
{
	const struct l4lb_service *svc = rcu_dereference(server->svc);

	if (!spin_trylock(&latency->lock))
		return;
	if (svc && READ_ONCE(svc->policy.latency)) {
		if (failed)
			take_failure(server, latency);
		else
			take_answer(server, latency, us);
	}
	spin_unlock(&latency->lock);
}

/* The counters stay. */
void l4lb_latency_forget(struct l4lb_server *server)
{
	struct l4lb_latency *latency = smp_load_acquire(&server->latency);	/* begin() */

	lockdep_assert_held(&server->ln->lock);
	if (!latency)
		return;
	spin_lock_bh(&latency->lock);
	latency->average = 0;
	latency->when = 0;
	latency->failures = 0;
	tell(server, 0);
	spin_unlock_bh(&latency->lock);
}

void l4lb_latency_tell_ghost(struct l4lb_server *server)
{
	struct l4lb_latency *latency = smp_load_acquire(&server->latency);	/* begin() */
	struct l4lb_server *ghost;

	ghost = rcu_dereference_protected(server->ghost,
					  lockdep_is_held(&server->ln->lock));
	if (!latency) {
		WRITE_ONCE(ghost->sched.latency, READ_ONCE(server->sched.latency));
		return;
	}
	/* Not instead of a newer one, which a packet has just told it. */
	spin_lock_bh(&latency->lock);
	WRITE_ONCE(ghost->sched.latency, READ_ONCE(server->sched.latency));
	spin_unlock_bh(&latency->lock);
}

/* ---- counters ---- */

static void add(struct l4lb_latency *latency, enum l4lb_latency_kind kind,
		unsigned int i, u64 microseconds)
{
	struct l4lb_latency_cpu *c = this_cpu_ptr(latency->cpu);

	u64_stats_update_begin(&c->syncp);
	u64_stats_inc(&c->kind[kind].n[i]);
	u64_stats_add(&c->kind[kind].sum, microseconds);
	u64_stats_update_end(&c->syncp);
}

void l4lb_latency_count(struct l4lb_server *server, enum l4lb_latency_kind kind,
			u64 microseconds)
{
	struct l4lb_latency *latency = latency_of(server);
	unsigned int bucket = fls64(microseconds);

	if (unlikely(!latency))
		return;
	add(latency, kind, min(bucket, L4LB_LATENCY_BUCKETS - 1U), microseconds);
	if (kind == L4LB_LATENCY_ANSWER)
		average(server, latency, microseconds, false);
}

void l4lb_latency_count_failed(struct l4lb_server *server,
			       enum l4lb_latency_kind kind,
			       enum l4lb_latency_fate fate)
{
	struct l4lb_latency *latency = latency_of(server);

	if (unlikely(!latency))
		return;
	add(latency, kind, fate, 0);
	average(server, latency, 0, true);
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

// SPDX-License-Identifier: GPL-2.0
/*
 * Weighted round robin: real servers in turn, in proportion to their weight.
 *
 * Source: "Scheduling techniques in a Linux cluster web server": A(3) B(2)
 * C(1) are served A B C A B A.
 *
 * The whole cycle is laid out when the pool is built, lap by lap: lap k visits
 * every server that has at least k turns, a turn being the greatest common
 * divisor of the weights.
 *
 *	weights A 3, B 2, C 1  ->  A B C | A B | A
 *
 * The laps are nested: each visits some of the servers of the one before.  So
 * if as many slots as the first lap has hold no usable server, neither does the
 * rest of the cycle, and a pick looks at every server at most twice, however
 * large the weights are.  A skipped server uses up its turns, so its share
 * falls to all others in proportion.
 *
 * Wrong tool for connections of very unequal length (wlc).
 */
#include "sched.h"

#include <linux/gcd.h>
#include <linux/math64.h>
#include <linux/slab.h>

/* A longer cycle is coarsened, but every server with a weight keeps a turn. */
#define WRR_MAX_SLOTS	65536

struct wrr_cycle {
	atomic64_t	turns;		/* taken so far */
	u32		n;		/* slots */
	u32		width;		/* slots of the first lap */
	u32		slot[];		/* indices into pool->server */
};

/* Weight that is worth one turn. */
static u32 wrr_unit(const struct l4lb_pool *pool)
{
	u32 unit = 0, n = 0, room, i;
	u64 total = 0;

	for (i = 0; i < pool->n; i++) {
		u32 weight = READ_ONCE(pool->server[i]->weight);

		unit = gcd(weight, unit);
		total += weight;
		n += !!weight;
	}
	if (total <= (u64)unit * WRR_MAX_SLOTS)
		return unit ?: 1;
	/* Rounding up to one turn costs at most one slot per server. */
	room = max_t(int, WRR_MAX_SLOTS - n, WRR_MAX_SLOTS / 2);
	return min_t(u64, div_u64(total + room - 1, room), INT_MAX);
}

static u32 wrr_turns(const struct l4lb_sched_server *d, u32 unit)
{
	u32 weight = READ_ONCE(d->weight);

	return weight ? max((weight + unit / 2) / unit, 1U) : 0;
}

/* Each lap is filtered from the one before. */
static void wrr_lay_out(struct wrr_cycle *cycle, const struct l4lb_pool *pool,
			u32 unit)
{
	u32 start = 0, end, lap, i;

	for (i = 0; i < pool->n; i++)
		if (wrr_turns(pool->server[i], unit))
			cycle->slot[cycle->n++] = i;
	cycle->width = cycle->n;

	for (lap = 2; start < cycle->n; lap++, start = end) {
		end = cycle->n;
		for (i = start; i < end; i++)
			if (wrr_turns(pool->server[cycle->slot[i]],
				      unit) >= lap)
				cycle->slot[cycle->n++] = cycle->slot[i];
	}
}

static int wrr_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	const struct wrr_cycle *was = old ? old->table : NULL;
	u32 unit = wrr_unit(pool), n = 0, pos, i;
	struct wrr_cycle *cycle;

	for (i = 0; i < pool->n; i++)
		n += wrr_turns(pool->server[i], unit);
	cycle = kvzalloc(struct_size(cycle, slot, n), GFP_KERNEL_ACCOUNT);
	if (!cycle)
		return -ENOMEM;
	wrr_lay_out(cycle, pool, unit);
	/* Start at the same fraction of the cycle as in the old pool. */
	if (was && was->n) {
		div_u64_rem(atomic64_read(&was->turns), was->n, &pos);
		atomic64_set(&cycle->turns,
			     div_u64((u64)pos * n + was->n / 2, was->n));
	}
	pool->table = cycle;
	return 0;
}

static void wrr_free(struct l4lb_pool *pool)
{
	kvfree(pool->table);
}

static struct l4lb_sched_server *wrr_pick(const struct l4lb_pool *pool,
					  const struct l4lb_flow *flow)
{
	struct wrr_cycle *cycle = pool->table;
	struct l4lb_sched_server *d;
	u32 tries, i;

	for (tries = cycle->width; tries; tries--) {
		div_u64_rem(atomic64_fetch_inc_relaxed(&cycle->turns),
			    cycle->n, &i);
		d = pool->server[cycle->slot[i]];
		if (l4lb_server_usable(d))
			return d;
	}
	/* This cycle has no usable server left (or other CPUs took its turns):
	 * begin the next one.  CPUs that race here repeat a turn.
	 */
	for (i = 0; i < cycle->width; i++) {
		d = pool->server[cycle->slot[i]];
		if (l4lb_server_usable(d)) {
			atomic64_set(&cycle->turns, i + 1);
			return d;
		}
	}
	return NULL;
}

static struct l4lb_sched_ops wrr_sched = {
	.name	= "wrr",
	.owner	= THIS_MODULE,
	.pick	= wrr_pick,
	.build	= wrr_build,
	.free	= wrr_free,
};
module_l4lb_sched(wrr_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb weighted round robin scheduler");
MODULE_VERSION("0.1.0");

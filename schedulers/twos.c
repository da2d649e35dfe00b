// SPDX-License-Identifier: GPL-2.0
/*
 * Power of two choices: of two usable real servers, drawn at random in
 * proportion to their weights, the one with fewer connections for its weight.
 *
 * Source: Mitzenmacher, "The Power of Two Choices in Randomized Load
 * Balancing", 1996; load as in IPVS: an active connection counts as much as
 * 257 inactive ones.  The same server may be drawn twice.
 *
 * Almost as even as wlc, without its herding: directors that share real
 * servers do not all choose the same one.  Wrong tool where picks must be
 * reproducible.
 */
#include "sched.h"

#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#define TWOS_TRIES	8	/* draws of unusable servers in a row */

static int twos_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	u64 *end, sum = 0;
	unsigned int i;

	/* Server i owns the numbers from end[i - 1] to below end[i]. */
	end = kvcalloc(pool->n + 1, sizeof(*end), GFP_KERNEL_ACCOUNT);
	if (!end)
		return -ENOMEM;
	for (i = 0; i < pool->n; i++) {
		sum += READ_ONCE(pool->server[i]->weight);
		end[i] = sum;
	}
	pool->table = end;
	return 0;
}

static void twos_free(struct l4lb_pool *pool)
{
	kvfree(pool->table);
}

/* The owner of @number, which is below the last end. */
static struct l4lb_sched_server *twos_owner(const struct l4lb_pool *pool,
					    u64 number)
{
	unsigned int low = 0, high = pool->n - 1, mid;
	const u64 *end = pool->table;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (number < end[mid])
			high = mid;
		else
			low = mid + 1;
	}
	return pool->server[low];
}

static struct l4lb_sched_server *twos_draw(const struct l4lb_pool *pool,
					   u64 sum)
{
	unsigned int tries;
	u64 number;

	for (tries = TWOS_TRIES; tries; tries--) {
		struct l4lb_sched_server *d;

		div64_u64_rem(get_random_u64(), sum, &number);
		d = twos_owner(pool, number);
		if (l4lb_server_usable(d))
			return d;
	}
	return NULL;
}

static struct l4lb_sched_server *twos_pick(const struct l4lb_pool *pool,
					   const struct l4lb_flow *flow)
{
	const u64 *end = pool->table;
	struct l4lb_sched_server *a, *b;
	u64 sum;

	sum = pool->n ? end[pool->n - 1] : 0;
	if (!sum)
		return NULL;
	a = twos_draw(pool, sum);
	b = twos_draw(pool, sum);
	if (!a || !b)
		/* Hardly any server is usable: scan instead of drawing. */
		return l4lb_pool_least(pool);
	return l4lb_server_less(b, a) ? b : a;
}

static struct l4lb_sched_ops twos_sched = {
	.name	= "twos",
	.owner	= THIS_MODULE,
	.pick	= twos_pick,
	.build	= twos_build,
	.free	= twos_free,
};
module_l4lb_sched(twos_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb power of two choices scheduler");
MODULE_VERSION("0.1.0");

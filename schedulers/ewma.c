// SPDX-License-Identifier: GPL-2.0
/*
 * The real server that is expected to answer first: its latency of late, times
 * (active connections + 1), for its weight.  The latency is a moving average of the
 * answers that the director sees ("latency on", by NAT).
 *
 * Source: the load metric "Peak EWMA" of Finagle (Twitter, 2013).  As there, a server
 * that was never measured is tried at once while it has no connection, and then waited
 * for; failures count as a long wait.  Otherwise than there, an answer that took long counts
 * no more than others: a single miss of a cache says little about the next request.
 *
 * One choice in 64 goes to the next server in turn, so that one that is slow or refuses
 * is measured again.  Of more than 16 servers, it looks at 16 that it draws at random.
 *
 * Wrong tool where answers say nothing of the load; for UDP, whose flows are never
 * active: the quickest server gets all; and for one-packet services and servers without
 * NAT, which are not measured.  A server whose latency is the lowest gets all
 * connections while nobody waits.
 */
#include "sched.h"

#include <linux/math64.h>
#include <linux/random.h>
#include <linux/slab.h>

#define EWMA_DRAWS	16
#define EWMA_TURN	64		/* choices, of which one is in turn */
#define EWMA_UNKNOWN	1000000		/* us: one that has still to answer */
#define EWMA_MOST	BIT_ULL(43)	/* fits 64 bits when it is compared */

/* How long one more connection waits for its answer; U64_MAX: it may not come here. */
static u64 ewma_wait(const struct l4lb_sched_server *d)
{
	u64 latency = l4lb_server_latency(d), weight = l4lb_server_capacity(d);
	u32 active = max(atomic_read(&d->active), 0);

	if (!weight)
		return U64_MAX;
	/* UDP flows are never active. */
	if (!latency && atomic_read(&d->total))
		latency = EWMA_UNKNOWN;
	return div64_u64(min(latency * (active + 1ULL), EWMA_MOST) << 20, weight);
}

static struct l4lb_sched_server *ewma_best(const struct l4lb_pool *pool)
{
	bool all = pool->n <= EWMA_DRAWS;
	unsigned int i = all ? pool->n : EWMA_DRAWS;
	struct l4lb_sched_server *d, *best = NULL;
	u64 wait, least = U64_MAX;

	while (i--) {
		d = pool->server[all ? i : get_random_u32() % pool->n];
		wait = ewma_wait(d);
		if (wait < least) {
			least = wait;
			best = d;
		}
	}
	/* None of those drawn may take it. */
	return best || all ? best : l4lb_pool_fastest(pool);
}

static struct l4lb_sched_server *ewma_pick(const struct l4lb_pool *pool,
					   const struct l4lb_flow *flow)
{
	struct l4lb_sched_server *d;
	u32 *count = pool->state, n;

	/* Not atomic: CPUs that choose at once may have the same turn. */
	n = READ_ONCE(*count) + 1;
	WRITE_ONCE(*count, n);
	if (n % EWMA_TURN == 0 && pool->n) {
		d = pool->server[n / EWMA_TURN % pool->n];
		if (l4lb_server_usable(d))
			return d;
	}
	return ewma_best(pool);
}

static void *ewma_init(const u32 *option)
{
	u32 *count = kzalloc(sizeof(*count), GFP_KERNEL_ACCOUNT);

	return count ?: ERR_PTR(-ENOMEM);
}

static void ewma_exit(void *state)
{
	kfree(state);
}

static struct l4lb_sched_ops ewma_sched = {
	.name	= "ewma",
	.owner	= THIS_MODULE,
	.pick	= ewma_pick,
	.init	= ewma_init,
	.exit	= ewma_exit,
	.rank	= { l4lb_rank_fastest },
	.greedy	= L4LB_GREEDY_WEIGHTED,
};
module_l4lb_sched(ewma_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb latency scheduler: the server that is expected to answer first");
MODULE_VERSION("0.1.0");

// SPDX-License-Identifier: GPL-2.0
/*
 * Round robin: every usable real server in turn, whatever its weight and load.
 *
 * Source: "Scheduling techniques in a Linux cluster web server": servers
 * A B C are served A B C A B C, in the order in which they were added.
 *
 * One counter of turns per pool, and no lock: CPUs that race get different
 * turns and so different servers.  A skipped server uses up its turn; otherwise
 * the one after it would get a double share.
 *
 * Wrong tool for servers of unequal power (wrr) and for connections of very
 * unequal length (lc, wlc).
 */
#include "sched.h"

#include <linux/math64.h>
#include <linux/slab.h>

/* Turns to start @pool with, so that the rotation continues from @old:
 * after the server picked last or, if that is gone, its nearest predecessor.
 * Picks that are made meanwhile are not seen; a server may get a turn twice.
 */
static u64 rr_resume(const struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	u64 turns = atomic64_read((const atomic64_t *)old->table);
	unsigned int i, n = 0;
	u32 last;

	if (!old->n || !turns)
		return 0;
	div_u64_rem(turns - 1, old->n, &last);
	/* Those that stay are in their old order, before the new ones. */
	for (i = 0; i <= last && n < pool->n; i++)
		n += pool->server[n] == old->server[i];
	return n;
}

static int rr_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	atomic64_t *turns = kmalloc(sizeof(*turns), GFP_KERNEL_ACCOUNT);

	if (!turns)
		return -ENOMEM;
	atomic64_set(turns, old ? rr_resume(pool, old) : 0);
	pool->table = turns;
	return 0;
}

static void rr_free(struct l4lb_pool *pool)
{
	kfree(pool->table);
}

static struct l4lb_sched_server *rr_pick(const struct l4lb_pool *pool,
					 const struct l4lb_flow *flow)
{
	atomic64_t *turns = pool->table;
	unsigned int tries;
	u32 i;

	for (tries = pool->n; tries; tries--) {
		/* 64 bits never wrap, so the order never jumps. */
		div_u64_rem(atomic64_fetch_inc_relaxed(turns), pool->n, &i);
		if (l4lb_server_usable(pool->server[i]))
			return pool->server[i];
	}
	/* Other CPUs may have taken the turns of the only usable server. */
	for (i = 0; i < pool->n; i++)
		if (l4lb_server_usable(pool->server[i]))
			return pool->server[i];
	return NULL;
}

static struct l4lb_sched_ops rr_sched = {
	.name	= "rr",
	.owner	= THIS_MODULE,
	.pick	= rr_pick,
	.build	= rr_build,
	.free	= rr_free,
};
module_l4lb_sched(rr_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb round robin scheduler");
MODULE_VERSION("0.1.0");

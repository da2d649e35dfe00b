// SPDX-License-Identifier: GPL-2.0
/*
 * Scheduler "moody": picks like wlc.  Its parameters make init() and build()
 * fail, build() and free() slow; "states" and "tables" count allocations that are not
 * yet freed: afterwards both must be 0.  Of its options build() reads one, and pick() could
 * read the other.
 */
#include "sched.h"

#include <linux/delay.h>
#include <linux/slab.h>

static int init_error;
module_param(init_error, int, 0644);
MODULE_PARM_DESC(init_error, "what init() fails with, 0: it works");

static int build_error;
module_param(build_error, int, 0644);
MODULE_PARM_DESC(build_error, "what build() returns, 0: it works");

static int build_delay;
module_param(build_delay, int, 0644);
MODULE_PARM_DESC(build_delay, "how long build() takes, in milliseconds");

static int free_delay;
module_param(free_delay, int, 0644);
MODULE_PARM_DESC(free_delay, "how long free() takes, in milliseconds");

/* Not atomic_t, because module_param() needs an int.  Changed by count() only. */
static int states;
module_param(states, int, 0444);
MODULE_PARM_DESC(states, "given out by init() and not yet back by exit()");

static int tables;
module_param(tables, int, 0444);
MODULE_PARM_DESC(tables, "given out by build() and not yet back by free()");

static DEFINE_MUTEX(count_lock);	/* free() and exit() run on a workqueue */

static void count(int *what, int add)
{
	mutex_lock(&count_lock);
	*what += add;
	mutex_unlock(&count_lock);
}

static struct l4lb_sched_server *moody_pick(const struct l4lb_pool *pool,
					    const struct l4lb_flow *flow)
{
	/* State and table must not be freed as long as the pool exists. */
	if (*(int *)pool->state != 1 || *(int *)pool->table != 2)
		return NULL;
	return l4lb_pool_least(pool);
}

static int *give(int value)
{
	int *mem = kmalloc(sizeof(*mem), GFP_KERNEL);

	if (mem)
		*mem = value;
	return mem;
}

static int moody_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	int err = READ_ONCE(build_error);

	msleep(READ_ONCE(build_delay));
	if (err)
		return err;
	pool->table = give(2);
	if (!pool->table)
		return -ENOMEM;
	count(&tables, 1);
	return 0;
}

static void moody_free(struct l4lb_pool *pool)
{
	msleep(READ_ONCE(free_delay));
	kfree(pool->table);
	count(&tables, -1);
}

static void *moody_init(const u32 *option)
{
	int err = READ_ONCE(init_error);
	int *state;

	if (err)
		return ERR_PTR(err);
	state = give(1);
	if (!state)
		return ERR_PTR(-ENOMEM);
	count(&states, 1);
	return state;
}

static void moody_exit(void *state)
{
	kfree(state);
	count(&states, -1);
}

static const struct l4lb_sched_option moody_options[] = {
	{ .name = "table", .max = 9, .rebuild = true, .what = "a number for build()" },
	{ .name = "pick", .max = 9, .what = "a number for pick()" },
};

static struct l4lb_sched_ops moody_sched = {
	.name		= "moody",
	.owner		= THIS_MODULE,
	.pick		= moody_pick,
	.build		= moody_build,
	.free		= moody_free,
	.init		= moody_init,
	.exit		= moody_exit,
	.options	= moody_options,
	.n_options	= ARRAY_SIZE(moody_options),
};
module_l4lb_sched(moody_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb test: a scheduler that fails when told so");

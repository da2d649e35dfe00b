// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of a service.
 *
 * The rate of new connections is limited by the generic cell rate algorithm
 * (ITU-T I.371): one number, the time when the next connection is due if they come
 * at the limit.  A connection may come before it is due, by a burst.  Most of a
 * flood is refused without a written line.
 *
 * The number of connections is the sum of the real servers' totals.  To keep
 * that sum would cost services without a limit a write for each connection, and
 * to add it up would cost a walk.  So the sum tells how many may still begin,
 * and the walk is made when these have begun: at most once a jiffy, and more
 * seldom where there are many real servers.  Connections that end meanwhile make
 * room at the next walk, so there are never more than the limit.
 */
#include "service/limit.h"

#include <linux/math64.h>
#include <linux/netlink.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "service/pool.h"
#include "service/server.h"
#include "base/stats.h"

#define TIME_SHIFT	8	/* see struct l4lb_limit */
#define HELD_UP		((s64)NSEC_PER_SEC << TIME_SHIFT)
#define SERVERS_A_JIFFY	1024	/* that the walks may look at */

/* ---- packet path ---- */

static u64 clock_now(void)
{
	return ktime_get_ns() << TIME_SHIFT;
}

/* Of a connection at @now, how long must it wait?  Not positive: it may begin.  A
 * CPU that was held up since it read the clock finds @next far ahead; only much
 * further ahead it is a number of years ago, since it wraps.
 */
static s64 wait_of(const struct l4lb_limit *limit, u64 next, u64 now)
{
	s64 slack = READ_ONCE(limit->slack), ahead = next - now;

	if (ahead > slack + (s64)READ_ONCE(limit->step) + HELD_UP)
		return 0;
	return ahead - slack;
}

static bool rate_admits(struct l4lb_limit *limit, u64 now)
{
	u64 step = READ_ONCE(limit->step), from;
	s64 next;

	if (!step)
		return true;
	next = atomic64_read(&limit->next);
	do {
		if (wait_of(limit, next, now) > 0)
			return false;
		from = (s64)(next - now) > 0 &&
		       (s64)(next - now) <= (s64)READ_ONCE(limit->slack) ?
		       next : now;
	} while (!atomic64_try_cmpxchg(&limit->next, &next, from + step));
	return true;
}

/* What a flood finds most of the time, without a write.  More is looked at later. */
static bool is_refused(const struct l4lb_limit *limit, bool counted, u64 now)
{
	if (counted && READ_ONCE(limit->most) && atomic_read(&limit->left) <= 0 &&
	    time_before(jiffies, READ_ONCE(limit->count_at)))
		return true;
	return READ_ONCE(limit->step) &&
	       wait_of(limit, atomic64_read(&limit->next), now) > 0;
}

/* Connections of the real servers, and CPUs that may be about to add one. */
static u64 count(const struct l4lb_limit *limit, const struct l4lb_pool *pool)
{
	u64 sum = atomic_read_acquire(&limit->entering);
	unsigned int i;

	for (i = 0; i < pool->n; i++)
		/* Negative for a moment when it is read beside a change. */
		sum += max(atomic_read(&pool->server[i]->total), 0);
	return sum;
}

/* A connection that took its place before @left was emptied is either counted
 * or entering.  Return: false if it is too early, or another CPU is at it.
 */
static bool count_again(struct l4lb_limit *limit, const struct l4lb_service *svc)
{
	const struct l4lb_pool *pool = rcu_dereference(svc->pool);
	u64 n;

	if (time_before(jiffies, READ_ONCE(limit->count_at)) ||
	    !spin_trylock(&limit->lock))
		return false;
	if (!time_before(jiffies, limit->count_at)) {
		atomic_xchg(&limit->left, 0);
		n = count(limit, pool) - 1;	/* this CPU is entering */
		if (n < limit->most)
			atomic_add(limit->most - n, &limit->left);
		WRITE_ONCE(limit->count_at,
			   jiffies + 1 + pool->n / SERVERS_A_JIFFY);
	}
	spin_unlock(&limit->lock);
	return true;
}

static bool take_place(struct l4lb_limit *limit, const struct l4lb_service *svc)
{
	/* A full barrier: it is seen to enter before it takes a place. */
	atomic_inc_return(&limit->entering);
	if (atomic_dec_if_positive(&limit->left) >= 0)
		return true;
	if (count_again(limit, svc) && atomic_dec_if_positive(&limit->left) >= 0)
		return true;
	atomic_dec(&limit->entering);
	return false;
}

/* Counting sees the connection before it sees that this CPU has left. */
void l4lb_limit_leave(struct l4lb_limit *limit)
{
	atomic_dec_return_release(&limit->entering);
}

bool l4lb_limit_admits(struct l4lb_limit *limit, const struct l4lb_service *svc,
		       bool counted, bool *entered)
{
	u64 now = READ_ONCE(limit->step) ? clock_now() : 0;

	*entered = false;
	if (is_refused(limit, counted, now))
		return false;
	*entered = counted && READ_ONCE(limit->most);
	if (*entered && !take_place(limit, svc))
		return false;
	if (likely(rate_admits(limit, now)))
		return true;
	if (*entered) {
		atomic_inc(&limit->left);
		l4lb_limit_leave(limit);
	}
	return false;
}

/* ---- control path ---- */

/* It lives as long as the service: packets may be using it. */
int l4lb_limit_reserve(struct l4lb_service *svc,
		       const struct l4lb_policy *policy,
		       struct netlink_ext_ack *extack)
{
	struct l4lb_limit *limit;

	lockdep_assert_held(&svc->ln->lock);
	if (svc->limit || !(policy->limit_rate || policy->limit_conns))
		return 0;
	limit = kzalloc(sizeof(*limit), GFP_KERNEL_ACCOUNT);
	if (limit)
		limit->refused = alloc_percpu(u64);
	if (!limit || !limit->refused) {
		kfree(limit);
		NL_SET_ERR_MSG(extack, "no memory for the limits of the service");
		return -ENOMEM;
	}
	spin_lock_init(&limit->lock);
	smp_store_release(&svc->limit, limit);	/* packets find it whole */
	return 0;
}

void l4lb_limit_set(struct l4lb_service *svc, const struct l4lb_policy *policy)
{
	u32 rate = policy->limit_rate, burst = policy->limit_burst;
	bool anew = rate != svc->policy.limit_rate ||
		    burst != svc->policy.limit_burst;
	struct l4lb_limit *limit = svc->limit;
	u64 step;

	lockdep_assert_held(&svc->ln->lock);
	WRITE_ONCE(svc->policy.limit_rate, rate);
	WRITE_ONCE(svc->policy.limit_burst, burst);
	WRITE_ONCE(svc->policy.limit_reply, policy->limit_reply);
	if (limit && svc->policy.limit_conns != policy->limit_conns) {
		/* A count of the old limit is over, or is not begun. */
		spin_lock_bh(&limit->lock);
		WRITE_ONCE(limit->most, policy->limit_conns);
		atomic_set(&limit->left, 0);
		limit->count_at = jiffies;
		spin_unlock_bh(&limit->lock);
	}
	WRITE_ONCE(svc->policy.limit_conns, policy->limit_conns);
	if (!limit || !anew)
		return;
	step = rate ? div_u64((u64)NSEC_PER_SEC << TIME_SHIFT, rate) : 0;
	burst = burst ?: max(rate / 10, 1U);
	WRITE_ONCE(limit->slack, step * (burst - 1));
	WRITE_ONCE(limit->step, step);
	atomic64_set(&limit->next, clock_now());
}

/* New connections that were refused since the last ZERO. */
u64 l4lb_limit_refused(const struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	if (!svc->limit)
		return 0;
	return l4lb_percpu_sum(svc->limit->refused, 0) - svc->limit->zero;
}

void l4lb_limit_zero(struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	if (svc->limit)
		svc->limit->zero = l4lb_percpu_sum(svc->limit->refused, 0);
}

void l4lb_limit_free(struct l4lb_service *svc)
{
	if (!svc->limit)
		return;
	free_percpu(svc->limit->refused);
	kfree(svc->limit);
}

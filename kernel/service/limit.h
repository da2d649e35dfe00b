/* SPDX-License-Identifier: GPL-2.0 */
/* Limits of a service: the rate of new connections, and how many there may be. */
#ifndef _L4LB_LIMIT_H
#define _L4LB_LIMIT_H

#include <linux/percpu.h>
#include <linux/spinlock.h>

#include "service/service.h"

/**
 * struct l4lb_limit - what a service may begin, once it has or had a limit
 * @step: time between two connections at the limit; 0: the rate has none
 * @slack: how far ahead of the clock @next may be
 * @most: connections at most; 0: no limit
 * @next: when the next connection is due, if they come at the limit
 * @left: connections that may begin before they are counted again
 * @entering: CPUs between l4lb_limit_admits() and l4lb_limit_leave()
 * @lock: held while connections are counted
 * @count_at: jiffies before which they are not counted again
 * @refused: for each CPU, new connections that were refused
 * @zero: their sum at the last ZERO (configuration mutex)
 *
 * Times are in nanoseconds / 256, and wrap.
 */
struct l4lb_limit {
	u64			step;
	u64			slack;
	u32			most;
	atomic64_t		next;
	atomic_t		left;
	atomic_t		entering;
	spinlock_t		lock;
	unsigned long		count_at;
	u64 __percpu		*refused;
	u64			zero;
};

/* Packet path: RCU, BH off.  May a connection begin now?  @counted: it will be one of
 * l4lb_sched_server.total.  If *@entered, leave() follows when it is, or could
 * not begin.
 */
bool l4lb_limit_admits(struct l4lb_limit *limit, const struct l4lb_service *svc,
		       bool counted, bool *entered);
void l4lb_limit_leave(struct l4lb_limit *limit);
/* Counts a packet that was not admitted; its reason was L4LB_DROP_LIMIT. */
static inline void l4lb_limit_count(struct l4lb_limit *limit)
{
	this_cpu_inc(*limit->refused);
}

/* Configuration mutex held; reserve() may sleep. */
int l4lb_limit_reserve(struct l4lb_service *svc,
		       const struct l4lb_policy *policy,
		       struct netlink_ext_ack *extack);
void l4lb_limit_set(struct l4lb_service *svc, const struct l4lb_policy *policy);
u64 l4lb_limit_refused(const struct l4lb_service *svc);
void l4lb_limit_zero(struct l4lb_service *svc);
void l4lb_limit_free(struct l4lb_service *svc);	/* no reader is left */

#endif /* _L4LB_LIMIT_H */

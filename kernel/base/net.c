// SPDX-License-Identifier: GPL-2.0
/* Per-namespace state that all other files need: counters and the configuration
 * mutex.
 */
#include "base/net.h"

#define CREATE_TRACE_POINTS
#include "base/trace.h"

unsigned int l4lb_net_id __read_mostly;
struct workqueue_struct *l4lb_wq;

/* Context: may sleep.  Return: 0, or -ENOMEM with nothing allocated. */
int l4lb_net_init(struct l4lb_net *ln, struct net *net)
{
	int err = -ENOMEM;

	ln->net = net;
	mutex_init(&ln->lock);
	ln->generation = 1;
	spin_lock_init(&ln->defaults_lock);
	INIT_LIST_HEAD(&ln->sched_defaults);
	ln->drops = __alloc_percpu(sizeof(u64) * L4LB_DROP_MAX,
				   __alignof__(u64));
	if (!ln->drops)
		return err;
	ln->fast_counts = __alloc_percpu(sizeof(u64) * L4LB_FAST_MAX,
					 __alignof__(u64));
	if (!ln->fast_counts)
		goto err_free_drops;
	err = l4lb_stats_init(&ln->stats, false);
	if (err)
		goto err_free_fast_counts;
	return 0;

err_free_fast_counts:
	free_percpu(ln->fast_counts);
err_free_drops:
	free_percpu(ln->drops);
	return err;
}

/* Called last, when no packet and no reader is left. */
void l4lb_net_exit(struct l4lb_net *ln)
{
	l4lb_stats_destroy(&ln->stats);
	free_percpu(ln->fast_counts);
	free_percpu(ln->drops);
}

/* SPDX-License-Identifier: GPL-2.0 */
/* Per-namespace defaults of schedulers' options. */
#ifndef _L4LB_SCHED_DEFAULT_H
#define _L4LB_SCHED_DEFAULT_H

#include "base/net.h"
#include "sched.h"

/**
 * struct l4lb_sched_default - a namespace's default of a scheduler's options
 * @node: in l4lb_net.sched_defaults (configuration mutex)
 * @ops: the scheduler
 * @value: jiffies; READ_ONCE()
 */
struct l4lb_sched_default {
	struct list_head		node;
	const struct l4lb_sched_ops	*ops;
	int				value;
};

/* Configuration mutex held. */
u32 l4lb_sched_default(struct l4lb_net *ln, const struct l4lb_sched_ops *ops,
		       unsigned int i);
void l4lb_sched_default_changed(struct l4lb_net *ln,
				const struct l4lb_sched_ops *ops);

#endif /* _L4LB_SCHED_DEFAULT_H */

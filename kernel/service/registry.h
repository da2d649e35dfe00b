/* SPDX-License-Identifier: GPL-2.0 */
/* The schedulers there are. */
#ifndef _L4LB_REGISTRY_H
#define _L4LB_REGISTRY_H

#include "base/net.h"
#include "sched.h"

/* get returns a module reference; may sleep and load a module, so call it
 * without the configuration mutex.
 */
const struct l4lb_sched_ops *l4lb_sched_get(const char *name);
void l4lb_sched_put(const struct l4lb_sched_ops *ops);
int l4lb_sched_each(unsigned int first,
		    int (*fn)(const struct l4lb_sched_ops *ops, void *arg),
		    void *arg);

/**
 * struct l4lb_sched_listener - called for each scheduler in each namespace
 * @added: the scheduler or the namespace is new; 0 or a negative errno, and
 *	the new one is refused
 * @removed: either goes; also for a scheduler that @added was not called with
 *
 * Context: may sleep; the configuration mutex is not held.
 */
struct l4lb_sched_listener {
	int (*added)(struct l4lb_net *ln, const struct l4lb_sched_ops *ops);
	void (*removed)(struct l4lb_net *ln, const struct l4lb_sched_ops *ops);
};

/* There is one.  Before the first namespace. */
void l4lb_sched_listen(const struct l4lb_sched_listener *listener);

int l4lb_sched_net_init(struct l4lb_net *ln);
void l4lb_sched_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_REGISTRY_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* The registered schedulers. */
#ifndef _L4LB_REGISTRY_H
#define _L4LB_REGISTRY_H

#include "base/net.h"
#include "sched.h"

/* l4lb_sched_get() takes a module reference.  It may sleep and load a module:
 * call it without the configuration mutex.
 */
const struct l4lb_sched_ops *l4lb_sched_get(const char *name);
void l4lb_sched_put(const struct l4lb_sched_ops *ops);
int l4lb_sched_each(unsigned int first,
		    int (*fn)(const struct l4lb_sched_ops *ops, void *arg),
		    void *arg);

/**
 * struct l4lb_sched_listener - called for each scheduler in each namespace
 * @added: the scheduler or the namespace is new; a negative errno refuses it
 * @removed: the scheduler or the namespace goes; also called if @added was not
 *
 * Context: may sleep; the configuration mutex is not held.
 */
struct l4lb_sched_listener {
	int (*added)(struct l4lb_net *ln, const struct l4lb_sched_ops *ops);
	void (*removed)(struct l4lb_net *ln, const struct l4lb_sched_ops *ops);
};

/* Sets the only listener; call it before the first namespace. */
void l4lb_sched_listen(const struct l4lb_sched_listener *listener);

int l4lb_sched_net_init(struct l4lb_net *ln);
void l4lb_sched_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_REGISTRY_H */

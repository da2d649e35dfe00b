/* SPDX-License-Identifier: GPL-2.0 */
/* Which devices the fast path looks at. */
#ifndef _L4LB_FAST_DEVICE_H
#define _L4LB_FAST_DEVICE_H

#include "entry/fast.h"

/**
 * struct l4lb_fast_device - a device whose packets are looked at
 * @ops: the hook
 * @ln: its namespace
 * @id: what connections call it
 * @rcu: to free it
 */
struct l4lb_fast_device {
	struct nf_hook_ops	ops;
	struct l4lb_net		*ln;
	u8			id;
	struct rcu_head		rcu;
};

/* With the first service; configuration mutex held. */
int l4lb_fast_create(struct l4lb_net *ln);

/* The namespace is going, its devices are still there.  Takes RTNL. */
void l4lb_fast_stop(struct l4lb_net *ln);

/* Packets are gone, too. */
void l4lb_fast_destroy(struct l4lb_net *ln);

/* Services, their policy or the sysctl have changed: which devices are looked
 * at may, too.  They follow in a moment.  Any lock may be held but RTNL.
 */
void l4lb_fast_changed(struct l4lb_net *ln);

int l4lb_fast_init(void);
void l4lb_fast_exit(void);

#endif /* _L4LB_FAST_DEVICE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Which devices the fast path is attached to. */
#ifndef _L4LB_FAST_DEVICE_H
#define _L4LB_FAST_DEVICE_H

#include "entry/fast.h"

/**
 * struct l4lb_fast_device - a device that the fast path is attached to
 * @ops: the hook
 * @ln: its namespace
 * @id: its number in connections, for requests; or %L4LB_FAST_NO_ID
 * @used: when the number was last used, in jiffies, accurate to a second
 * @gone: it gets no number any more
 * @opaque: its frames may lack what only its driver knows, see xdp.h
 * @serial: no other device of the namespace ever has the same, for replies
 * @rcu: to free it
 */
struct l4lb_fast_device {
	struct nf_hook_ops	ops;
	struct l4lb_net		*ln;
	u16			id;
	bool			gone, opaque;
	u32			serial;
	unsigned long		used;
	struct rcu_head		rcu;
};

/* The device with number @ifindex, or NULL.  RCU. */
static inline struct l4lb_fast_device *
l4lb_fast_device_of(struct l4lb_fast *fast, u32 ifindex)
{
	struct l4lb_fast_device *d =
		rcu_dereference(fast->near[ifindex % L4LB_FAST_NEAR]);

	return likely(d && (u32)d->ops.dev->ifindex == ifindex) ?
	       d : xa_load(&fast->devices, ifindex);
}

/* No connection stores that. */
#define L4LB_FAST_NO_ID	L4LB_FAST_IDS

/* As l4lb_fast_device_id(), of a number that was not used for a second. */
u8 l4lb_fast_device_use(struct l4lb_fast_device *d);

/* The number for a request that came in by @d; 0: none is left.  RCU, BH off. */
static inline u8 l4lb_fast_device_id(struct l4lb_fast_device *d)
{
	/* A number used within the last second stays the device's for long. */
	unsigned long used = smp_load_acquire(&d->used);
	u16 id = READ_ONCE(d->id);

	return likely(id != L4LB_FAST_NO_ID && jiffies - used < HZ) ?
	       id : l4lb_fast_device_use(d);
}

/* With the first service; configuration mutex held. */
int l4lb_fast_create(struct l4lb_net *ln);

/* The namespace is going away; its devices still exist.  Takes RTNL. */
void l4lb_fast_stop(struct l4lb_net *ln);

/* After l4lb_fast_stop(), when no packet is left. */
void l4lb_fast_destroy(struct l4lb_net *ln);

/* Services, their policy or the sysctl have changed: check in a moment, in a
 * work item, which devices to attach to.  Any lock may be held.
 */
void l4lb_fast_changed(struct l4lb_net *ln);
/* The receiving daemon or sysctl backup_only has changed.  Likewise. */
void l4lb_fast_stand_by(struct l4lb_net *ln);

int l4lb_fast_init(void);
void l4lb_fast_exit(void);

#endif /* _L4LB_FAST_DEVICE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* The locks that connections, or buckets of their table, share. */
#ifndef _L4LB_CONN_LOCK_H
#define _L4LB_CONN_LOCK_H

#include <linux/cache.h>
#include <linux/spinlock.h>

/* Alone in its line: CPUs that take different locks do not meet. */
struct l4lb_conn_lock {
	spinlock_t	lock;
} ____cacheline_aligned_in_smp;

#endif /* _L4LB_CONN_LOCK_H */

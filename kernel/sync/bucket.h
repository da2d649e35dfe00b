/* SPDX-License-Identifier: GPL-2.0 */
/* Token buckets. */
#ifndef _L4LB_SYNC_BUCKET_H
#define _L4LB_SYNC_BUCKET_H

#include <linux/jiffies.h>

/**
 * struct l4lb_sync_bucket - what may be taken
 * @tokens: what is left
 * @filled: jiffies of the last filling; zeroed, a bucket is soon full
 */
struct l4lb_sync_bucket {
	unsigned long	filled;
	u32		tokens;
};

/* Take @n, if there are so many.  @rate: tokens per second, up to 2^20; a bucket
 * holds those of one second.  The caller has a lock.
 */
static inline bool l4lb_sync_bucket_take(struct l4lb_sync_bucket *bucket,
					 u32 rate, u32 n)
{
	unsigned long past = jiffies - bucket->filled;

	if (past >= HZ) {
		bucket->tokens = rate;
		bucket->filled = jiffies;
	} else if (past * rate >= HZ) {
		bucket->tokens = min_t(u32, rate, bucket->tokens +
				       past * rate / HZ);
		bucket->filled = jiffies;
	}
	if (bucket->tokens < n)
		return false;
	bucket->tokens -= n;
	return true;
}

#endif /* _L4LB_SYNC_BUCKET_H */

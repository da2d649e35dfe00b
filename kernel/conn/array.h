/* SPDX-License-Identifier: GPL-2.0 */
/* The buckets of the connection table.  Included by table.h. */
#ifndef _L4LB_CONN_ARRAY_H
#define _L4LB_CONN_ARRAY_H

#include <linux/cache.h>
#include <linux/types.h>

struct l4lb_conn;

/* Kinds of slots.  A connection has one for the client's packets and, with NAT,
 * one for the replies; a template has one of its own kind.
 */
enum l4lb_conn_kind {
	L4LB_CONN_IN,
	L4LB_CONN_OUT,
	L4LB_CONN_TEMPLATE_IN,
	L4LB_CONN_CALL_IN,	/* template with a Call-ID, see call.h */
	L4LB_CONN_LOCAL,	/* full NAT: in place of OUT, by the local end */
};

enum {
	L4LB_BUCKET_SLOTS	= 6,
	L4LB_STRIPE_BITS	= 8,	/* also an array's minimum */
	L4LB_EQUAL_REPLIES	= 16,	/* connections to whose replies one
					 * header may belong
					 */
};

/**
 * struct l4lb_conn_bucket - connections with equal high bits of the hash
 * @tags: byte i: the lowest 8 bits of slot i's hash, never 0; 0: it is free
 * @slot: address of the connection, and its kind in the lowest bits
 * @next: next bucket of the chain, when this one is full
 *
 * One cache line.  A reader looks at @tags first and then at the slots that may
 * match; a writer, under the stripe's lock, sets a slot before its tag.
 */
struct l4lb_conn_bucket {
	u64				tags;
	unsigned long			slot[L4LB_BUCKET_SLOTS];
	struct l4lb_conn_bucket __rcu	*next;
} __aligned(64);

/**
 * struct l4lb_conn_array - buckets
 * @buckets: by the highest bits of the hash
 * @shift: number of the other bits
 * @chained: some buckets may have a chain
 * @next: during a resize, the array that all entries move to; those not here
 *	(any more) are there
 */
struct l4lb_conn_array {
	struct l4lb_conn_bucket		*buckets;
	u8				shift;
	bool				chained;
	struct l4lb_conn_array __rcu	*next;
};

#endif /* _L4LB_CONN_ARRAY_H */

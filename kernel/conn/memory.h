/* SPDX-License-Identifier: GPL-2.0 */
/* The memory of connections. */
#ifndef _L4LB_CONN_MEMORY_H
#define _L4LB_CONN_MEMORY_H

#include <linux/percpu.h>

#include "conn/conn.h"

/* Taken from the slab at once, which costs less than each by itself.  With their number
 * they fill two cache lines.  A test that lets allocations fail means each.
 */
#define L4LB_CONN_STOCK	(IS_ENABLED(CONFIG_FAILSLAB) ? 1 : 15)

/**
 * struct l4lb_conn_stock - connections of one size that a CPU has ready
 * @n: their number
 * @item: the connections, not initialised; the last one is taken first
 */
struct l4lb_conn_stock {
	unsigned int	n;
	void		*item[L4LB_CONN_STOCK];
};

/* An IPv4 connection takes half the memory of one of IPv6, or with a large part. */
enum { L4LB_CONN_SMALL, L4LB_CONN_MEDIUM, L4LB_CONN_STOCKS };

DECLARE_PER_CPU_ALIGNED(struct l4lb_conn_stock, l4lb_conn_stocks[L4LB_CONN_STOCKS]);

/* For a connection of @size, whose stock is empty. */
struct l4lb_conn *l4lb_conn_restock(unsigned int size);
/* For one with a local end, which takes more than both. */
struct l4lb_conn *l4lb_conn_alloc_local(void);

/**
 * l4lb_conn_alloc() - memory for a connection
 * @af: its family
 * @uses: L4LB_USE_* that need its large part; 0: none
 *
 * Context: BH off.  Return: not initialised; or NULL.
 */
static __always_inline struct l4lb_conn *l4lb_conn_alloc(u8 af, u32 uses)
{
	const unsigned int size = af == AF_INET && !uses ? L4LB_CONN_SMALL : L4LB_CONN_MEDIUM;
	struct l4lb_conn_stock *stock;

	lockdep_assert_in_softirq();
	if (unlikely(uses & L4LB_USE_SNAT))
		return l4lb_conn_alloc_local();
	stock = this_cpu_ptr(&l4lb_conn_stocks[size]);
	return likely(stock->n) ? stock->item[--stock->n] : l4lb_conn_restock(size);
}

/* Any context. */
void l4lb_conn_free(struct l4lb_conn *conn);

int l4lb_conn_memory_init(void);
void l4lb_conn_memory_exit(void);

#endif /* _L4LB_CONN_MEMORY_H */

// SPDX-License-Identifier: GPL-2.0
/* The memory of connections: three sizes, each with a slab cache. */
#include "conn/memory.h"

#include <linux/slab.h>

static struct kmem_cache *caches[L4LB_CONN_STOCKS], *local_cache;

DEFINE_PER_CPU_ALIGNED(struct l4lb_conn_stock, l4lb_conn_stocks[L4LB_CONN_STOCKS]);

struct l4lb_conn *l4lb_conn_restock(unsigned int size)
{
	struct l4lb_conn_stock *stock = this_cpu_ptr(&l4lb_conn_stocks[size]);

	if (L4LB_CONN_STOCK == 1 ||
	    !kmem_cache_alloc_bulk(caches[size], GFP_ATOMIC | __GFP_NOWARN, L4LB_CONN_STOCK,
				   stock->item))
		return kmem_cache_alloc(caches[size], GFP_ATOMIC);
	stock->n = L4LB_CONN_STOCK - 1;
	return stock->item[stock->n];
}

struct l4lb_conn *l4lb_conn_alloc_local(void)
{
	return kmem_cache_alloc(local_cache, GFP_ATOMIC);
}

void l4lb_conn_free(struct l4lb_conn *conn)
{
	const bool large = l4lb_conn_test(conn, L4LB_CONN_LARGE);

	if (unlikely(large && conn->uses & L4LB_USE_SNAT))
		kmem_cache_free(local_cache, conn);
	else
		kmem_cache_free(caches[conn->af == AF_INET && !large ?
				       L4LB_CONN_SMALL : L4LB_CONN_MEDIUM], conn);
}

static struct kmem_cache *cache_create(const char *name, size_t size)
{
	return kmem_cache_create(name, size, 0, SLAB_HWCACHE_ALIGN, NULL);
}

int __init l4lb_conn_memory_init(void)
{
	struct kmem_cache *small, *medium;

	small = cache_create("l4lb_conn_ipv4", offsetofend(struct l4lb_conn, v4));
	medium = cache_create("l4lb_conn_ipv6", offsetof(struct l4lb_conn, local));
	local_cache = cache_create("l4lb_conn_local", sizeof(struct l4lb_conn));
	caches[L4LB_CONN_SMALL] = small;
	caches[L4LB_CONN_MEDIUM] = medium;
	if (small && medium && local_cache)
		return 0;
	l4lb_conn_memory_exit();
	return -ENOMEM;
}

/* No packet and no connection is left. */
void l4lb_conn_memory_exit(void)
{
	struct l4lb_conn_stock *stock;
	unsigned int i;
	int cpu;

	for (i = 0; i < L4LB_CONN_STOCKS; i++) {
		for_each_possible_cpu(cpu) {
			stock = per_cpu_ptr(&l4lb_conn_stocks[i], cpu);
			while (stock->n)
				kmem_cache_free(caches[i], stock->item[--stock->n]);
		}
		kmem_cache_destroy(caches[i]);
	}
	kmem_cache_destroy(local_cache);
}

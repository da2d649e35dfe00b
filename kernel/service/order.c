// SPDX-License-Identifier: GPL-2.0
/*
 * The order in which the hashing schedulers fill their tables.
 *
 * Directors that share an address but no connections must choose the same
 * server for a client.  The order of adding differs between them as soon as one
 * of them has been restarted or has lost a server for a moment; the addresses
 * do not differ.
 */
#include "sched.h"

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

static int compare(const void *a, const void *b)
{
	const struct l4lb_sched_server *x = *(struct l4lb_sched_server *const *)a;
	const struct l4lb_sched_server *y = *(struct l4lb_sched_server *const *)b;

	return (int)x->af - (int)y->af ?:
	       memcmp(&x->addr, &y->addr, sizeof(x->addr)) ?:
	       (int)ntohs(x->port) - (int)ntohs(y->port);
}

/**
 * l4lb_pool_order() - a pool's real servers in the order that an option asks for
 * @pool: the pool, in build()
 * @order: value of option "order": enum l4lb_order
 *
 * No two servers of a pool have the same family, address and port, so the order
 * by address is complete.
 *
 * Context: may sleep.
 * Return: pool->n servers, to be freed with kvfree(); NULL without memory.
 */
struct l4lb_sched_server **l4lb_pool_order(const struct l4lb_pool *pool, u32 order)
{
	struct l4lb_sched_server **server;

	server = kvcalloc(max(pool->n, 1U), sizeof(*server), GFP_KERNEL_ACCOUNT);
	if (!server)
		return NULL;
	memcpy(server, pool->server, pool->n * sizeof(*server));
	if (order == L4LB_ORDER_ADDRESS)
		sort(server, pool->n, sizeof(*server), compare, NULL);
	return server;
}
EXPORT_SYMBOL_GPL(l4lb_pool_order);

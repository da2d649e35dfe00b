// SPDX-License-Identifier: GPL-2.0
/*
 * The packet that a program reads.  Each processor has one, for all services: with BH off
 * nothing else chooses there, and what a pool has is written for each choice.
 */
#include "bpf_view.h"

#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

static DEFINE_PER_CPU(struct sk_buff *, views);
static DEFINE_MUTEX(lock);
static unsigned int users;	/* programs */

static unsigned int length(unsigned int n)
{
	return sizeof(struct l4lb_bpf_flow) + n * sizeof(struct l4lb_bpf_server);
}

static void free_views(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		consume_skb(per_cpu(views, cpu));
		per_cpu(views, cpu) = NULL;
	}
}

static int new_views(void)
{
	struct l4lb_bpf_flow *view;
	struct sk_buff *skb;
	int cpu;

	for_each_possible_cpu(cpu) {
		skb = __alloc_skb(length(L4LB_BPF_SERVERS_MAX), GFP_KERNEL, 0,
				  cpu_to_node(cpu));
		if (!skb) {
			free_views();
			return -ENOMEM;
		}
		view = skb_put_zero(skb, length(L4LB_BPF_SERVERS_MAX));
		view->server_size = sizeof(struct l4lb_bpf_server);
		/* Helpers of BPF look for them. */
		skb_reset_mac_header(skb);
		skb_reset_network_header(skb);
		per_cpu(views, cpu) = skb;
	}
	return 0;
}

int bpf_views_get(void)
{
	int err = 0;

	mutex_lock(&lock);
	if (!users)
		err = new_views();
	users += !err;
	mutex_unlock(&lock);
	return err;
}

void bpf_views_put(void)
{
	mutex_lock(&lock);
	if (!--users)
		free_views();
	mutex_unlock(&lock);
}

/* The table is the real servers' ids. */
int bpf_view_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	unsigned int i;
	u32 *id;

	pool->table = NULL;
	if (!pool->file || !pool->n || pool->n > L4LB_BPF_SERVERS_MAX)
		return 0;
	id = kvcalloc(pool->n, sizeof(*id), GFP_KERNEL_ACCOUNT);
	if (!id)
		return -ENOMEM;
	for (i = 0; i < pool->n; i++)
		id[i] = jhash2(pool->server[i]->addr.all, 4, ntohs(pool->server[i]->port));
	pool->table = id;
	return 0;
}

void bpf_view_free(struct l4lb_pool *pool)
{
	kvfree(pool->table);
}

struct sk_buff *bpf_view(const struct l4lb_pool *pool, const struct l4lb_flow *flow)
{
	struct sk_buff *skb = __this_cpu_read(views);
	struct l4lb_bpf_flow *view = (struct l4lb_bpf_flow *)skb->data;
	struct l4lb_bpf_server *row = (struct l4lb_bpf_server *)(view + 1);
	const u32 *id = pool->table;
	unsigned int i;

	view->servers = pool->n;
	view->family = flow->af;
	view->protocol = flow->proto;
	view->sport = flow->sport;
	view->dport = flow->dport;
	memcpy(view->saddr, flow->saddr.all, sizeof(view->saddr));
	memcpy(view->daddr, flow->daddr.all, sizeof(view->daddr));
	for (i = 0; i < L4LB_BPF_OPTIONS; i++)
		view->option[i] = l4lb_option(pool, BPF_OPT_A + i);
	for (i = 0; i < pool->n; i++) {
		const struct l4lb_sched_server *d = pool->server[i];

		row[i].weight = READ_ONCE(d->weight);
		row[i].usable = l4lb_server_usable(d);
		row[i].active = atomic_read(&d->active);
		row[i].total = atomic_read(&d->total);
		row[i].latency = min_t(u64, l4lb_server_latency(d), U32_MAX);
		row[i].id = id[i];
	}
	__skb_set_length(skb, length(pool->n));
	return skb;
}

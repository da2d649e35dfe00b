// SPDX-License-Identifier: GPL-2.0
/* The packet that a program reads: each processor has one for each pool.  What does not
 * change is written when the pool is built.
 */
#include "bpf_view.h"

#include <linux/jhash.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>

static struct sk_buff * __percpu *bpf_views(const struct l4lb_pool *pool)
{
	return (struct sk_buff * __percpu __force *)pool->table;
}

static struct l4lb_bpf_server *servers_of(const struct sk_buff *skb)
{
	return (struct l4lb_bpf_server *)(skb->data + sizeof(struct l4lb_bpf_flow));
}

static struct sk_buff *new_view(const struct l4lb_pool *pool, int cpu)
{
	unsigned int i, len = sizeof(struct l4lb_bpf_flow) +
			      pool->n * sizeof(struct l4lb_bpf_server);
	struct l4lb_bpf_flow *view;
	struct sk_buff *skb;

	skb = __alloc_skb(len, GFP_KERNEL, 0, cpu_to_node(cpu));
	if (!skb)
		return NULL;
	view = skb_put_zero(skb, len);
	view->servers = pool->n;
	view->server_size = sizeof(struct l4lb_bpf_server);
	for (i = 0; i < pool->n; i++) {
		const struct l4lb_sched_server *d = pool->server[i];

		servers_of(skb)[i].id = jhash2(d->addr.all, 4, ntohs(d->port));
	}
	/* Helpers of BPF look for them. */
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	return skb;
}

static void free_views(struct sk_buff * __percpu *views)
{
	int cpu;

	for_each_possible_cpu(cpu)
		consume_skb(*per_cpu_ptr(views, cpu));
	free_percpu(views);
}

int bpf_view_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	struct sk_buff * __percpu *views;
	int cpu;

	pool->table = NULL;
	if (!pool->file || !pool->n || pool->n > L4LB_BPF_SERVERS_MAX)
		return 0;
	views = alloc_percpu_gfp(struct sk_buff *, GFP_KERNEL_ACCOUNT);
	if (!views)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		*per_cpu_ptr(views, cpu) = new_view(pool, cpu);
		if (!*per_cpu_ptr(views, cpu)) {
			free_views(views);
			return -ENOMEM;
		}
	}
	pool->table = (void __force *)views;
	return 0;
}

void bpf_view_free(struct l4lb_pool *pool)
{
	if (pool->table)
		free_views(bpf_views(pool));
}

struct sk_buff *bpf_view(const struct l4lb_pool *pool, const struct l4lb_flow *flow)
{
	struct sk_buff *skb = *this_cpu_ptr(bpf_views(pool));
	struct l4lb_bpf_flow *view = (struct l4lb_bpf_flow *)skb->data;
	struct l4lb_bpf_server *row = servers_of(skb);
	unsigned int i;

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
	}
	return skb;
}

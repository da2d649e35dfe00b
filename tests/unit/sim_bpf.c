// SPDX-License-Identifier: GPL-2.0
/*
 * Programs for scheduler bpf: "option program N" takes the one of number N.
 *
 *	1 first		always the first real server
 *	2 least		schedulers/bpf/least.c, as it is
 *	3 rendezvous	schedulers/bpf/rendezvous.c, likewise
 *	4 last		always the last one
 *	5 beyond	the one behind the last
 *	6 -1		none
 *	7 slow		the first one, after 51 us
 *	8 uneven	the first one, after 51 us each second time that it is timed
 */
#include "sched.h"
#include "../../schedulers/l4lb_bpf.h"

u64 shim_clock;

unsigned int shim_cpu(void)
{
	static int threads;
	static __thread int cpu = -1;

	if (cpu < 0)
		cpu = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % SHIM_CPUS;
	return cpu;
}

/* What a program sees of the kernel. */
#define __sk_buff	sk_buff
#define SEC(name)

static long bpf_skb_load_bytes(const struct sk_buff *skb, u32 at, void *to, u32 len)
{
	if (at > skb->len || len > skb->len - at)
		return -EFAULT;
	memcpy(to, skb->data + at, len);
	return 0;
}

#define pick		pick_least
#define _license	license_least
#include "../../schedulers/bpf/least.c"
#undef pick
#undef _license
#undef SERVERS

#define pick		pick_rendezvous
#define _license	license_rendezvous
#include "../../schedulers/bpf/rendezvous.c"

static u32 first(const struct sk_buff *skb)
{
	return 0;
}

static u32 least(const struct sk_buff *skb)
{
	return pick_least((struct sk_buff *)skb);
}

static u32 rendezvous(const struct sk_buff *skb)
{
	return pick_rendezvous((struct sk_buff *)skb);
}

static u32 beyond(const struct sk_buff *skb)
{
	struct l4lb_bpf_flow flow;

	memcpy(&flow, skb->data, sizeof(flow));
	return flow.servers;
}

static u32 last(const struct sk_buff *skb)
{
	return beyond(skb) - 1;
}

static u32 none(const struct sk_buff *skb)
{
	return -1;
}

static u32 slow(const struct sk_buff *skb)
{
	shim_clock += 51 * NSEC_PER_USEC;
	return 0;
}

static u32 uneven(const struct sk_buff *skb)
{
	static unsigned int calls;

	/* One in 64 is timed. */
	return calls++ / 64 % 2 ? slow(skb) : 0;
}

struct l4lb_sched_file *shim_file(const struct l4lb_sched_ops *ops, const u32 *option)
{
	static struct bpf_prog program[] = {
		{ first }, { least }, { rendezvous }, { last }, { beyond }, { none }, { slow },
		{ uneven },
	};
	static struct l4lb_sched_file file[ARRAY_SIZE(program)];
	unsigned int i;

	for (i = 0; i < ops->n_options; i++) {
		u32 id = option[i];

		if (!ops->options[i].file || !id || id > ARRAY_SIZE(program))
			continue;
		file[id - 1].data = &program[id - 1];
		file[id - 1].id = id;
		return &file[id - 1];
	}
	return NULL;
}

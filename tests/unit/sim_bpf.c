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
 *	8 uneven	the first one, after 51 us each second time
 *	9 awful		the first one, after a second
 *	10 late		as slow, from the 101st time on
 */
#include "sched.h"
#include "../../schedulers/l4lb_bpf.h"

u64 shim_clock;

#define SHIM_TIMED	64	/* one choice of so many is timed */

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

	return calls++ / SHIM_TIMED % 2 ? slow(skb) : 0;
}

static u32 awful(const struct sk_buff *skb)
{
	shim_clock += 1000000 * NSEC_PER_USEC;
	return 0;
}

static u32 late(const struct sk_buff *skb)
{
	static unsigned int calls;

	return ++calls > 100 ? slow(skb) : 0;
}

struct bpf_prog *shim_program(int fd)
{
	static u32 (*const run[])(const struct sk_buff *skb) = {
		first, least, rendezvous, last, beyond, none, slow, uneven, awful,
		late,
	};
	static struct bpf_prog program[ARRAY_SIZE(run)];
	static typeof(*program->aux) aux[ARRAY_SIZE(run)];

	if (fd < 1 || fd > (int)ARRAY_SIZE(run))
		abort();
	aux[fd - 1].id = fd;
	program[fd - 1] = (struct bpf_prog) { run[fd - 1], &aux[fd - 1] };
	return &program[fd - 1];
}

struct l4lb_sched_file *shim_file(const struct l4lb_sched_ops *ops, const u32 *option)
{
	static struct l4lb_sched_file file[16];
	struct l4lb_sched_file *this;
	unsigned int i;

	for (i = 0; i < ops->n_options; i++) {
		if (!ops->options[i].file || !option[i])
			continue;
		this = &file[option[i] % ARRAY_SIZE(file)];
		if (!this->id)
			this->data = ops->open(option[i], &this->id);
		return this;
	}
	return NULL;
}

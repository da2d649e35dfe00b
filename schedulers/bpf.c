// SPDX-License-Identifier: GPL-2.0
/*
 * A scheduler in BPF: a program that the administrator loads chooses the real server.
 *
 *	program		the program: socket filter; user space names its pin
 *	budget		a program that takes longer is not asked any more
 *	a to h		numbers for the program
 *	otherwise	choices that were not the program's
 *	stopped		1: the program took too long; setting an option tries it again
 *
 * The program sees what l4lb_bpf.h describes.  The verifier keeps it from harming the
 * kernel.  Instead of a real server that may not be chosen the least loaded one is, as
 * without a program and with more than 1,024 real servers.  The first hundred choices are
 * timed, and then one in 64 of each processor: see bpf_program.c.
 *
 * Source: the kernel's socket filters.
 */
#include "bpf_program.h"
#include "bpf_view.h"

#include <linux/percpu.h>
#include <linux/slab.h>

#define BPF_SAMPLE	64	/* choices, a power of two */

/**
 * struct bpf_cpu - counts of one processor
 * @choices: all; only the lowest bits matter
 * @otherwise: those that were not the program's
 */
struct bpf_cpu {
	u32	choices;
	u32	otherwise;
};

/**
 * struct bpf_state - a scheduler at work
 * @cpu: counts of each processor
 * @pace: of the program
 */
struct bpf_state {
	struct bpf_cpu __percpu	*cpu;
	struct bpf_pace		pace;
};

static struct l4lb_sched_server *bpf_pick(const struct l4lb_pool *pool,
					  const struct l4lb_flow *flow)
{
	struct bpf_state *state = pool->state;
	struct bpf_cpu *cpu = this_cpu_ptr(state->cpu);
	u32 i;

	if (likely(pool->table && !READ_ONCE(state->pace.stopped))) {
		i = bpf_program_ask(pool, flow, &state->pace,
				    ++cpu->choices % BPF_SAMPLE == 0);
		if (likely(i < pool->n && l4lb_server_usable(pool->server[i])))
			return pool->server[i];
	}
	WRITE_ONCE(cpu->otherwise, cpu->otherwise + 1);
	return l4lb_pool_least(pool);
}

static void *bpf_init(const u32 *option)
{
	struct bpf_state *state = kzalloc(sizeof(*state), GFP_KERNEL_ACCOUNT);

	if (state)
		state->cpu = alloc_percpu_gfp(struct bpf_cpu, GFP_KERNEL_ACCOUNT);
	if (state && state->cpu) {
		bpf_pace_begin(&state->pace);
		return state;
	}
	kfree(state);
	return ERR_PTR(-ENOMEM);
}

static void bpf_exit(void *data)
{
	struct bpf_state *state = data;

	free_percpu(state->cpu);
	kfree(state);
}

/* Somebody wants it to work again. */
static void bpf_changed(void *data)
{
	struct bpf_state *state = data;

	bpf_pace_begin(&state->pace);
}

static u32 bpf_count(const void *data, unsigned int i)
{
	const struct bpf_state *state = data;
	u32 sum = 0;
	int cpu;

	if (i == BPF_OPT_STOPPED)
		return READ_ONCE(state->pace.stopped);
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(state->cpu, cpu)->otherwise);
	return sum;
}

#define BPF_LETTER(letter) \
	{ .name = letter, .max = U32_MAX, .what = "a number for the program" }

static const struct l4lb_sched_option bpf_options[] = {
	[BPF_OPT_PROGRAM] = {
		.name = "program", .max = U32_MAX, .rebuild = true, .file = true,
		.what = "a BPF program of type socket, by the path of its pin",
	},
	[BPF_OPT_BUDGET] = {
		.name = "budget", .min = 1, .max = 10000, .def = 50,
		.what = "microseconds of a choice; a slower program is stopped",
	},
	[BPF_OPT_A] = BPF_LETTER("a"), BPF_LETTER("b"), BPF_LETTER("c"), BPF_LETTER("d"),
		  BPF_LETTER("e"), BPF_LETTER("f"), BPF_LETTER("g"), BPF_LETTER("h"),
	[BPF_OPT_OTHERWISE] = {
		.name = "otherwise", .max = U32_MAX, .count = true,
		.what = "choices of the least loaded server instead of the program's",
	},
	[BPF_OPT_STOPPED] = {
		.name = "stopped", .max = 1, .count = true,
		.what = "1: the program took too long; set option program again",
	},
};

static struct l4lb_sched_ops bpf_sched = {
	.name		= "bpf",
	.owner		= THIS_MODULE,
	.pick		= bpf_pick,
	.rank		= { l4lb_rank_least },
	.build		= bpf_view_build,
	.free		= bpf_view_free,
	.init		= bpf_init,
	.exit		= bpf_exit,
	.changed	= bpf_changed,
	.open		= bpf_program_open,
	.close		= bpf_program_close,
	.count		= bpf_count,
	.options	= bpf_options,
	.n_options	= ARRAY_SIZE(bpf_options),
	.greedy		= L4LB_GREEDY_PERHAPS,
};
module_l4lb_sched(bpf_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb scheduler in BPF");
MODULE_VERSION("0.1.0");

// SPDX-License-Identifier: GPL-2.0
/*
 * The program of a scheduler in BPF.
 *
 * The verifier bounds its time only loosely.  A choice above the budget counts as often as
 * it is above it, 20 times at most; one within it makes it all good again.  A hundred stop
 * the program: five choices of a very slow one.
 */
#include "bpf_program.h"
#include "bpf_view.h"

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/math64.h>
#include <linux/timekeeping.h>

#define BPF_PATIENCE	100
#define BPF_WORST	20	/* counts of one choice */
#define BPF_FRESH	100	/* choices */

void bpf_pace_begin(struct bpf_pace *pace)
{
	atomic_set(&pace->fresh, BPF_FRESH);
	atomic_set(&pace->over, 0);
	WRITE_ONCE(pace->stopped, false);
}

static void judge(const struct l4lb_pool *pool, struct bpf_pace *pace, u64 nsec)
{
	u32 budget = l4lb_option(pool, BPF_OPT_BUDGET) * NSEC_PER_USEC, times;

	if (nsec <= budget) {
		atomic_set(&pace->over, 0);
		return;
	}
	times = min_t(u64, div_u64(nsec, budget), BPF_WORST);
	if (atomic_add_return(times, &pace->over) < BPF_PATIENCE ||
	    READ_ONCE(pace->stopped))
		return;
	WRITE_ONCE(pace->stopped, true);
	pr_warn_ratelimited("program %u takes more than %u us for a choice: the least loaded server gets new connections\n",
			    pool->file->id, l4lb_option(pool, BPF_OPT_BUDGET));
}

u32 bpf_program_ask(const struct l4lb_pool *pool, const struct l4lb_flow *flow,
		    struct bpf_pace *pace, bool timed)
{
	const struct bpf_prog *program = pool->file->data;
	u64 start;
	u32 i;

	if (unlikely(atomic_read(&pace->fresh) > 0))
		timed = atomic_dec_if_positive(&pace->fresh) >= 0;
	if (likely(!timed))
		return bpf_prog_run_clear_cb(program, bpf_view(pool, flow));
	start = ktime_get_ns();
	i = bpf_prog_run_clear_cb(program, bpf_view(pool, flow));
	judge(pool, pace, ktime_get_ns() - start);
	return i;
}

void *bpf_program_open(int fd, u32 *id)
{
	struct bpf_prog *program;
	int err = bpf_views_get();

	if (err)
		return ERR_PTR(err);
	program = bpf_prog_get_type_dev(fd, BPF_PROG_TYPE_SOCKET_FILTER, false);
	if (IS_ERR(program))
		bpf_views_put();
	else
		*id = program->aux->id;
	return program;
}

void bpf_program_close(void *program)
{
	bpf_prog_put(program);
	bpf_views_put();
}

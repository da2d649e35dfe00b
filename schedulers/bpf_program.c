// SPDX-License-Identifier: GPL-2.0
/* The program of a scheduler in BPF.  The verifier bounds its time only loosely. */
#include "bpf_program.h"
#include "bpf_view.h"

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/sched/clock.h>

#define BPF_PATIENCE	100	/* samples in a row that are too long */

static void judge(const struct l4lb_pool *pool, struct bpf_pace *pace, u64 nsec)
{
	u32 budget = l4lb_option(pool, BPF_OPT_BUDGET);

	if (nsec <= (u64)budget * NSEC_PER_USEC) {
		atomic_set(&pace->slow, 0);
		return;
	}
	if (atomic_inc_return(&pace->slow) != BPF_PATIENCE)
		return;
	WRITE_ONCE(pace->stopped, true);
	pr_warn_ratelimited("program %u takes more than %u us for each choice: the least loaded server gets new connections\n",
			    pool->file->id, budget);
}

u32 bpf_program_ask(const struct l4lb_pool *pool, const struct l4lb_flow *flow,
		    struct bpf_pace *pace, bool timed)
{
	const struct bpf_prog *program = pool->file->data;
	struct sk_buff *view = bpf_view(pool, flow);
	u64 start;
	u32 i;

	if (likely(!timed))
		return bpf_prog_run_clear_cb(program, view);
	start = local_clock();
	i = bpf_prog_run_clear_cb(program, view);
	judge(pool, pace, local_clock() - start);
	return i;
}

void *bpf_program_open(int fd, u32 *id, struct netlink_ext_ack *extack)
{
	struct bpf_prog *program;

	program = bpf_prog_get_type_dev(fd, BPF_PROG_TYPE_SOCKET_FILTER, false);
	if (IS_ERR(program))
		NL_SET_ERR_MSG(extack,
			       "this is no BPF program of type \"socket filter\": load it with type socket");
	else
		*id = program->aux->id;
	return program;
}

void bpf_program_close(void *program)
{
	bpf_prog_put(program);
}

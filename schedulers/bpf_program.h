/* SPDX-License-Identifier: GPL-2.0 */
/* The program of a scheduler in BPF, and how long it takes. */
#ifndef _L4LB_BPF_PROGRAM_H
#define _L4LB_BPF_PROGRAM_H

#include "sched.h"

/**
 * struct bpf_pace - is a program within its budget?
 * @fresh: choices that are still timed, each
 * @over: how often it was above, see bpf_program.c
 * @stopped: the program is not to be asked
 */
struct bpf_pace {
	atomic_t	fresh;
	atomic_t	over;
	bool		stopped;
};

/* A new program, or one that is to be tried again. */
void bpf_pace_begin(struct bpf_pace *pace);

/* What the program answers; the pool has a table.  @timed: measure it.  Context: BH off. */
u32 bpf_program_ask(const struct l4lb_pool *pool, const struct l4lb_flow *flow,
		    struct bpf_pace *pace, bool timed);

/* l4lb_sched_ops.open and .close. */
void *bpf_program_open(int fd, u32 *id);
void bpf_program_close(void *program);

#endif /* _L4LB_BPF_PROGRAM_H */

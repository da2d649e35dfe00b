/* SPDX-License-Identifier: GPL-2.0 */
/* The program of a scheduler in BPF, and how long it takes. */
#ifndef _L4LB_BPF_PROGRAM_H
#define _L4LB_BPF_PROGRAM_H

#include "sched.h"

/**
 * struct bpf_pace - is a program within its budget?
 * @slow: samples in a row that were above it
 * @stopped: the program is not to be asked
 */
struct bpf_pace {
	atomic_t	slow;
	bool		stopped;
};

/* What the program answers; the pool has a table.  @timed: measure it.  Context: BH off. */
u32 bpf_program_ask(const struct l4lb_pool *pool, const struct l4lb_flow *flow,
		    struct bpf_pace *pace, bool timed);

/* l4lb_sched_ops.open and .close. */
void *bpf_program_open(int fd, u32 *id, struct netlink_ext_ack *extack);
void bpf_program_close(void *program);

#endif /* _L4LB_BPF_PROGRAM_H */

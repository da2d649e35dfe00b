/* SPDX-License-Identifier: GPL-2.0 */
/* What a scheduler in BPF reads. */
#ifndef _L4LB_BPF_VIEW_H
#define _L4LB_BPF_VIEW_H

#include "sched.h"
#include "l4lb_bpf.h"

struct sk_buff;

/* Options of scheduler bpf. */
enum {
	BPF_OPT_PROGRAM, BPF_OPT_BUDGET,
	BPF_OPT_A,
	BPF_OPT_OTHERWISE = BPF_OPT_A + L4LB_BPF_OPTIONS, BPF_OPT_STOPPED,
};

/* For each program: there are packets for it to read.  May sleep.  Return: 0 or -ENOMEM. */
int bpf_views_get(void);
void bpf_views_put(void);

/* l4lb_sched_ops.build and .free.  Without a program, or with too many real servers, there
 * is no table.
 */
int bpf_view_build(struct l4lb_pool *pool, const struct l4lb_pool *old);
void bpf_view_free(struct l4lb_pool *pool);

/* This processor's packet, for @flow; @pool has a table.  Context: BH off. */
struct sk_buff *bpf_view(const struct l4lb_pool *pool, const struct l4lb_flow *flow);

#endif /* _L4LB_BPF_VIEW_H */

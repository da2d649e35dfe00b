/* SPDX-License-Identifier: GPL-2.0 */
/* Setting the options of a service's scheduler.  Configuration mutex held. */
#ifndef _L4LB_OPTION_H
#define _L4LB_OPTION_H

#include "service/service.h"

/**
 * struct l4lb_sched_values - what a request wants of a scheduler's options
 * @option: values, in the order of l4lb_sched_ops.options
 * @key: the secret, if the request has it
 * @keyed: @key was in the request; otherwise it has at most the fingerprint
 */
struct l4lb_sched_values {
	u32		option[L4LB_SCHED_OPTIONS_MAX];
	siphash_key_t	key;
	bool		keyed;
};

u32 l4lb_key_fingerprint(const siphash_key_t *key);

/* Sets those in @set; all of @values are in range.  Return: 0 or -errno with a
 * sentence and nothing changed.  May sleep.
 */
int l4lb_service_set_options(struct l4lb_service *svc,
			     struct l4lb_sched_values *values, unsigned long set,
			     struct netlink_ext_ack *extack);

/* The steps of that, for a batch: find the key of a fingerprint; exchange the
 * values that build() reads, which undoes itself; set the others, too.
 */
int l4lb_values_settle(struct l4lb_sched_values *values,
		       const struct l4lb_sched_inst *inst,
		       struct netlink_ext_ack *extack);
bool l4lb_values_swap(struct l4lb_sched_values *values,
		      struct l4lb_sched_inst *inst);
void l4lb_values_commit(const struct l4lb_sched_values *values,
			struct l4lb_sched_inst *inst, unsigned long set);

#endif /* _L4LB_OPTION_H */

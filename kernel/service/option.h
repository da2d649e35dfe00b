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
 * @file: the file, with a reference, if the request has it
 */
struct l4lb_sched_values {
	u32		option[L4LB_SCHED_OPTIONS_MAX];
	siphash_key_t	key;
	bool		keyed;
	struct l4lb_sched_file	*file;
};

/* Opens @fd of the calling process for a scheduler with an option that has .file.  Return:
 * a reference, or ERR_PTR().  May sleep.
 */
struct l4lb_sched_file *l4lb_file_open(const struct l4lb_sched_ops *ops, int fd,
				       const char *path);

/* Forgets key and file, which may be those that others had before.  The scheduler must
 * still be there: a reference on it, or the mutex.  May sleep.
 */
void l4lb_values_release(struct l4lb_sched_values *values);

u32 l4lb_key_fingerprint(const siphash_key_t *key);

/* Sets those in @set; all of @values are in range.  Return: 0 or -errno with a
 * sentence and nothing changed.  May sleep.
 */
int l4lb_service_set_options(struct l4lb_service *svc,
			     struct l4lb_sched_values *values, unsigned long set,
			     struct netlink_ext_ack *extack);

/* The steps of that, for a batch: find key and file of their numbers; exchange the
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

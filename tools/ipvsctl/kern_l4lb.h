/* SPDX-License-Identifier: GPL-2.0 */
/* Schedulers, their options, and services' policies: the family L4LB, which
 * in-tree ip_vs lacks.
 *
 * Like kern.h: 0 or -errno, and no message. Without the family the answer is
 * -EOPNOTSUPP.
 */
#ifndef IPVSCTL_KERN_L4LB_H
#define IPVSCTL_KERN_L4LB_H

#include <stdbool.h>
#include <stdint.h>

#include "../../kernel/l4lb.h"

struct nlattr;
struct service;

/* What messages of the family have of a service. */
void l4lb_take_policy(struct nlattr *nest, struct service *svc);
void l4lb_take_bands(struct nlattr *list, struct service *svc);

struct sched_option {
	char name[L4LB_NAME_LEN];
	uint32_t value;			/* of a service; else the default */
	uint32_t min, max, def;
	char what[L4LB_WHAT_LEN];	/* unit and meaning */
};

struct sched_info {
	char name[L4LB_NAME_LEN];
	uint32_t flags;			/* IP_VS_SVC_F_SCHED* it has */
	struct sched_option options[L4LB_OPTIONS_MAX];
	unsigned int n;
};

struct sched_infos {
	struct sched_info *v;
	unsigned int n;
};

/* A scheduler by name; the kernel loads its module if need be. */
int kern_scheduler(const char *name, struct sched_info *info);

/* Those that are registered; free .v. None without the family: that is 0. */
int kern_schedulers(struct sched_infos *infos);

/* Reads options and policy of a service that was read: what is not at its
 * default. Without the family everything is.
 */
int kern_l4lb(struct service *svc);

/* Makes the kernel's options and policy those of @svc; others get their
 * default. Writes nothing if they are so already.
 */
int kern_l4lb_sync(const struct service *svc);

#endif

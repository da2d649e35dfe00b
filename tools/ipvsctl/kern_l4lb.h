/* SPDX-License-Identifier: GPL-2.0 */
/* Schedulers, their options, and services' policies: the family L4LB, which
 * in-tree ip_vs lacks.
 *
 * As in kern.h, functions return 0 or -errno and record no failure. Without the
 * family they return -EOPNOTSUPP, unless noted.
 */
#ifndef IPVSCTL_KERN_L4LB_H
#define IPVSCTL_KERN_L4LB_H

#include <stdbool.h>
#include <stdint.h>

#include "../../kernel/l4lb.h"

struct nlattr;
struct service;
struct svc_id;

/* Read a service's policy and bands from a message. */
void l4lb_take_policy(struct nlattr *nest, struct service *svc);
void l4lb_take_claim(struct nlattr **tb, struct service *svc);
void l4lb_take_counts(struct nlattr **tb, struct service *svc);

struct sched_option {
	char name[L4LB_NAME_LEN];
	uint32_t value;			/* of a service; else the default */
	uint32_t min, max, def;
	bool key;			/* a secret; values are fingerprints */
	bool file;			/* a program; values are numbers */
	bool count;			/* not to be set */
	char path[L4LB_PATH_LEN];	/* of a service's program */
	char what[L4LB_WHAT_LEN];	/* unit and meaning */
};

struct sched_info {
	char name[L4LB_NAME_LEN];
	uint32_t flags;			/* IP_VS_SVC_F_SCHED* it knows */
	struct sched_option options[L4LB_OPTIONS_MAX];
	unsigned int n;
};

struct sched_infos {
	struct sched_info *v;
	unsigned int n;
};

/* A scheduler by name; the kernel loads its module if need be. */
int kern_scheduler(const char *name, struct sched_info *info);

/* All that are registered; free .v. Without the family: 0, and none. */
int kern_schedulers(struct sched_infos *infos);

/* One option of a scheduler, from a reply. */
struct nlattr;
void l4lb_take_option(struct nlattr *nest, struct sched_option *o);

/* The options of a service's scheduler, and its counts. */
int kern_options(const struct svc_id *id, struct sched_info *info);

/* Adds options and policy to a service that was read: values that are not at
 * their default. Without the family: 0, and none.
 */
int kern_l4lb(struct service *svc);

/* Sets the service's options and policy in the kernel to those of @svc, others
 * to their default. Sends nothing if none differs.
 */
int kern_l4lb_sync(const struct service *svc);

/* The counters of a service begin again. */
int kern_l4lb_zero(const struct svc_id *id);

#endif

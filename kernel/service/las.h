/* SPDX-License-Identifier: GPL-2.0 */
/* Least attained service first: bands for the replies of a service. */
#ifndef _L4LB_LAS_H
#define _L4LB_LAS_H

#include <linux/types.h>

#include "service/service.h"

/* Packets and bytes sent in one band. */
struct l4lb_band {
	u64	packets;
	u64	bytes;
};

struct l4lb_bands_cpu {
	u64_stats_t		packets[L4LB_BANDS];
	u64_stats_t		bytes[L4LB_BANDS];
	struct u64_stats_sync	syncp;
};

/**
 * struct l4lb_bands - counters of a service's bands
 * @cpu: each written only by its CPU, with BH off
 * @zero: their values at the last ZERO (configuration mutex)
 */
struct l4lb_bands {
	struct l4lb_bands_cpu __percpu	*cpu;
	struct l4lb_band		zero[L4LB_BANDS];
};

/* Configuration mutex held, may sleep. */
int l4lb_las_check(const struct l4lb_policy *policy,
		   struct netlink_ext_ack *extack);
int l4lb_las_reserve(struct l4lb_service *svc, const struct l4lb_policy *policy,
		     struct netlink_ext_ack *extack);
void l4lb_las_set(struct l4lb_service *svc, const struct l4lb_policy *policy);
void l4lb_las_read(const struct l4lb_service *svc,
		   struct l4lb_band count[L4LB_BANDS]);
void l4lb_las_zero(struct l4lb_service *svc);
void l4lb_las_free(struct l4lb_service *svc);	/* no reader is left */

#endif /* _L4LB_LAS_H */

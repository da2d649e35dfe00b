// SPDX-License-Identifier: GPL-2.0
/*
 * Least attained service first.  A director cannot see how large a reply will
 * be, only how much of it has passed.  Sizes are heavy-tailed, so a connection
 * that has had few bytes so far probably needs few more.  Serving it first is
 * close to "shortest remaining processing time" without knowing sizes (Rai,
 * Urvoy-Keller, Biersack: Analysis of LAS scheduling for job size distributions
 * with high variance, SIGMETRICS 2003).
 *
 * The reply bytes that a connection has had decide its band, which becomes the
 * priority of its packets.  A queueing discipline serves bands by priority.
 */
#include "service/las.h"

#include <linux/netlink.h>

static const u32 default_bytes[L4LB_BANDS - 1] = L4LB_LAS_BYTES;

int l4lb_las_check(const struct l4lb_policy *policy,
		   struct netlink_ext_ack *extack)
{
	const u32 *bytes = policy->las_bytes;
	unsigned int i;

	for (i = 1; i < L4LB_BANDS - 1; i++)
		if (bytes[i] && bytes[i] <= bytes[i - 1]) {
			NL_SET_ERR_MSG(extack, "policy: each of LAS_BYTES_* must exceed the last");
			return -EINVAL;
		} else if (bytes[i] && !bytes[i - 1]) {
			NL_SET_ERR_MSG(extack, "policy: LAS_BYTES_* begin with LAS_BYTES_0");
			return -EINVAL;
		}
	return 0;
}

/* Counters live as long as the service: packets may be using them. */
int l4lb_las_reserve(struct l4lb_service *svc, const struct l4lb_policy *policy,
		     struct netlink_ext_ack *extack)
{
	struct l4lb_bands *bands;
	int cpu;

	lockdep_assert_held(&svc->ln->lock);
	if (!policy->priority || svc->bands)
		return 0;
	bands = kzalloc(sizeof(*bands), GFP_KERNEL_ACCOUNT);
	if (bands)
		bands->cpu = alloc_percpu(struct l4lb_bands_cpu);
	if (!bands || !bands->cpu) {
		kfree(bands);
		NL_SET_ERR_MSG(extack, "no memory for the counters of PRIORITY");
		return -ENOMEM;
	}
	for_each_possible_cpu(cpu)
		u64_stats_init(&per_cpu_ptr(bands->cpu, cpu)->syncp);
	WRITE_ONCE(svc->bands, bands);
	return 0;
}

void l4lb_las_free(struct l4lb_service *svc)
{
	if (!svc->bands)
		return;
	free_percpu(svc->bands->cpu);
	kfree(svc->bands);
}

/* Takes effect with the next packet; the counters keep their values. */
void l4lb_las_set(struct l4lb_service *svc, const struct l4lb_policy *policy)
{
	const u32 *bytes = policy->las_bytes[0] ? policy->las_bytes :
						  default_bytes;
	unsigned int i;

	lockdep_assert_held(&svc->ln->lock);
	for (i = 0; i < L4LB_BANDS - 1; i++) {
		WRITE_ONCE(svc->policy.las_bytes[i], policy->las_bytes[i]);
		WRITE_ONCE(svc->band_ends[i], bytes[i] ?: U32_MAX);
	}
	/* A packet that sees the new priority also sees the counters. */
	smp_store_release(&svc->policy.priority, policy->priority);
}

static void sum(const struct l4lb_bands *bands,
		struct l4lb_band total[L4LB_BANDS])
{
	struct l4lb_band one[L4LB_BANDS];
	unsigned int i, start;
	int cpu;

	memset(total, 0, sizeof(one));
	for_each_possible_cpu(cpu) {
		const struct l4lb_bands_cpu *b = per_cpu_ptr(bands->cpu, cpu);

		do {
			start = u64_stats_fetch_begin(&b->syncp);
			for (i = 0; i < L4LB_BANDS; i++) {
				one[i].packets = u64_stats_read(&b->packets[i]);
				one[i].bytes = u64_stats_read(&b->bytes[i]);
			}
		} while (u64_stats_fetch_retry(&b->syncp, start));
		for (i = 0; i < L4LB_BANDS; i++) {
			total[i].packets += one[i].packets;
			total[i].bytes += one[i].bytes;
		}
	}
}

/* Counts since the last ZERO; only for a service that has counters. */
void l4lb_las_read(const struct l4lb_service *svc,
		   struct l4lb_band count[L4LB_BANDS])
{
	unsigned int i;

	lockdep_assert_held(&svc->ln->lock);
	sum(svc->bands, count);
	for (i = 0; i < L4LB_BANDS; i++) {
		count[i].packets -= svc->bands->zero[i].packets;
		count[i].bytes -= svc->bands->zero[i].bytes;
	}
}

void l4lb_las_zero(struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	if (svc->bands)
		sum(svc->bands, svc->bands->zero);
}

/* SPDX-License-Identifier: GPL-2.0 */
/* How long real servers take to answer. */
#ifndef _L4LB_LATENCY_H
#define _L4LB_LATENCY_H

#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/u64_stats_sync.h>

#include "service/server.h"

enum l4lb_latency_kind {
	L4LB_LATENCY_HANDSHAKE,	/* from a SYN or INIT to its answer */
	L4LB_LATENCY_ANSWER,	/* from the first payload to the first reply to it */
	L4LB_LATENCY_KINDS
};

/* What has become of something that a client has sent. */
enum l4lb_latency_fate {
	L4LB_LATENCY_REFUSED = L4LB_LATENCY_BUCKETS,	/* it was reset */
	L4LB_LATENCY_UNANSWERED,	/* nothing came for as long as it was waited for */
	L4LB_LATENCY_FATES
};

/**
 * struct l4lb_latency_count - what was counted of one kind
 * @n: answers by their duration, see L4LB_LATENCY_BUCKETS; then L4LB_LATENCY_REFUSED
 *	and L4LB_LATENCY_UNANSWERED
 * @sum: microseconds of all answers
 */
struct l4lb_latency_count {
	u64	n[L4LB_LATENCY_FATES];
	u64	sum;
};

/* One CPU's share; written only by that CPU with BH off. */
struct l4lb_latency_cpu {
	struct {
		u64_stats_t	n[L4LB_LATENCY_FATES];
		u64_stats_t	sum;
	} kind[L4LB_LATENCY_KINDS];
	struct u64_stats_sync	syncp;
};

/**
 * struct l4lb_latency - how long a real server takes, once that was measured
 * @cpu: counters
 * @zero: their sums at the last ZERO (configuration mutex)
 * @lock: held while @average changes; packets only try to take it
 * @average: of answers, in 2^-14 microseconds, see l4lb_server_latency()
 * @when: of the last answer in it, in microseconds as by ktime_get(); 0: none
 * @failures: that came since the last answer, or since they counted
 */
struct l4lb_latency {
	struct l4lb_latency_cpu __percpu	*cpu;
	spinlock_t				lock;
	u64					average;
	u64					when;
	u8					failures;
	struct l4lb_latency_count		zero[L4LB_LATENCY_KINDS];
};

/* Packet path: RCU, BH off.  Without memory for counters nothing is counted. */
void l4lb_latency_count(struct l4lb_server *server, enum l4lb_latency_kind kind,
			u64 microseconds);
void l4lb_latency_count_failed(struct l4lb_server *server,
			       enum l4lb_latency_kind kind,
			       enum l4lb_latency_fate fate);

/* Configuration mutex held; may sleep.  Its service measures, or is about to. */
void l4lb_latency_prepare(struct l4lb_server *server);
/* Configuration mutex held.  It is not measured any more: schedulers know nothing of it. */
void l4lb_latency_forget(struct l4lb_server *server);
/* Configuration mutex held.  Its ghost, which it has, may have been made some time ago. */
void l4lb_latency_tell_ghost(struct l4lb_server *server);

/* Configuration mutex held.  Counts since the last ZERO; false: there are none. */
bool l4lb_latency_read(const struct l4lb_server *server,
		       struct l4lb_latency_count count[L4LB_LATENCY_KINDS]);
void l4lb_latency_zero(struct l4lb_server *server);

void l4lb_latency_free(struct l4lb_server *server);	/* no reader is left */

#endif /* _L4LB_LATENCY_H */

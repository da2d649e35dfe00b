/* SPDX-License-Identifier: GPL-2.0 */
/* How long real servers take, as histograms. */
#ifndef IPVSCTL_LATENCY_H
#define IPVSCTL_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "../../kernel/l4lb.h"

struct service;

/* Answers by their duration, see L4LB_LATENCY_BUCKETS, and what was no answer. */
struct latency {
	uint64_t bucket[L4LB_LATENCY_BUCKETS];
	uint64_t sum;		/* microseconds of all answers */
	uint64_t refused, unanswered;
};

struct server_latency {
	struct latency handshake, answer;
};

/* Where a bucket ends, in microseconds; 0: it is the last one. */
uint64_t latency_end(unsigned int bucket);
/* The number of answers. */
uint64_t latency_count(const struct latency *l);
/* Microseconds that the part @q (0 to 1) of the answers does not exceed: an estimate,
 * whose error is less than a bucket. Negative: there are no answers.
 */
double latency_quantile(const struct latency *l, double q);
double latency_mean(const struct latency *l);	/* exact; negative: none */

void latency_add(struct latency *to, const struct latency *l);
/* Takes @l away from @to; false if @to is no later state of the same counters. */
bool latency_subtract(struct latency *to, const struct latency *l);

/* Of all servers of a service. */
struct server_latency service_latency(const struct service *svc);

#endif

// SPDX-License-Identifier: GPL-2.0
/* The end of a bucket is twice its beginning. Within one, answers are taken to be
 * spread evenly by the logarithm of their duration.
 */
#include <math.h>
#include <stddef.h>

#include "latency.h"
#include "model.h"

uint64_t latency_end(unsigned int bucket)
{
	return bucket + 1 < L4LB_LATENCY_BUCKETS ? 1ull << bucket : 0;
}

uint64_t latency_count(const struct latency *l)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < L4LB_LATENCY_BUCKETS; i++)
		n += l->bucket[i];
	return n;
}

/* @part: of the bucket, 0 to 1. The last one has no end: what it has took longer. */
static double within(unsigned int bucket, double part)
{
	if (!bucket)
		return part;
	return (double)(1ull << (bucket - 1)) * (latency_end(bucket) ? exp2(part) : 1);
}

double latency_quantile(const struct latency *l, double q)
{
	uint64_t count = latency_count(l);
	double rank = q * (double)count, below = 0;
	unsigned int i, last = 0;

	if (!count)
		return -1;
	for (i = 0; i < L4LB_LATENCY_BUCKETS; i++) {
		double n = (double)l->bucket[i];

		if (n <= 0)
			continue;
		if (below + n >= rank)
			return within(i, (rank - below) / n);
		below += n;
		last = i;
	}
	return within(last, 1);
}

double latency_mean(const struct latency *l)
{
	uint64_t count = latency_count(l);

	return count ? (double)l->sum / (double)count : -1;
}

void latency_add(struct latency *to, const struct latency *l)
{
	unsigned int i;

	for (i = 0; i < L4LB_LATENCY_BUCKETS; i++)
		to->bucket[i] += l->bucket[i];
	to->sum += l->sum;
	to->refused += l->refused;
	to->unanswered += l->unanswered;
}

bool latency_subtract(struct latency *to, const struct latency *l)
{
	unsigned int i;

	for (i = 0; i < L4LB_LATENCY_BUCKETS; i++)
		if (to->bucket[i] < l->bucket[i])
			return false;
	if (to->refused < l->refused || to->unanswered < l->unanswered)
		return false;
	for (i = 0; i < L4LB_LATENCY_BUCKETS; i++)
		to->bucket[i] -= l->bucket[i];
	to->sum -= l->sum;
	to->refused -= l->refused;
	to->unanswered -= l->unanswered;
	return true;
}

struct server_latency service_latency(const struct service *svc)
{
	struct server_latency all = { 0 };
	size_t i;

	for (i = 0; i < svc->nservers; i++) {
		const struct server_latency *one = svc->servers[i].latency;

		if (!one)
			continue;
		latency_add(&all.handshake, &one->handshake);
		latency_add(&all.answer, &one->answer);
	}
	return all;
}

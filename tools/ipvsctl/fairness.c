// SPDX-License-Identifier: GPL-2.0
/* Jain, Chiu, Hawe: "A Quantitative Measure of Fairness and Discrimination for Resource
 * Allocation in Shared Computer Systems", DEC TR-301, 1984.
 */
#include <math.h>

#include "fairness.h"
#include "kern_trial.h"

struct fairness fairness_of(const struct trial_server *servers, size_t n)
{
	double x, sum = 0, squares = 0, max = 0, mean, variance;
	struct fairness f = { 0 };
	size_t i, usable = 0;

	for (i = 0; i < n; i++) {
		if (!servers[i].weight)
			continue;
		x = (double)servers[i].chosen / servers[i].weight;
		max = x > max ? x : max;
		sum += x;
		squares += x * x;
		usable++;
	}
	if (sum <= 0)
		return f;
	mean = sum / (double)usable;
	variance = squares / (double)usable - mean * mean;
	f.known = true;
	f.max_over_mean = max / mean;
	f.cv = variance > 0 ? sqrt(variance) / mean : 0;
	f.jain = sum * sum / ((double)usable * squares);
	return f;
}

double weights_of(const struct trial_server *servers, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += servers[i].weight;
	return sum;
}

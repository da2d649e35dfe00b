/* SPDX-License-Identifier: GPL-2.0 */
/* How evenly real servers were chosen, each for its weight. */
#ifndef IPVSCTL_FAIRNESS_H
#define IPVSCTL_FAIRNESS_H

#include <stdbool.h>
#include <stddef.h>

struct trial_server;

/* Of what real servers with a weight got for one of it. */
struct fairness {
	bool known;		/* something was chosen */
	double max_over_mean;	/* 1: all the same */
	double cv;		/* coefficient of variation; 0: all the same */
	double jain;		/* Jain's index: 1 all the same, 1/n one got all */
};

struct fairness fairness_of(const struct trial_server *servers, size_t n);

/* The sum of their weights. */
double weights_of(const struct trial_server *servers, size_t n);

#endif

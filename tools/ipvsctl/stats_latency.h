/* SPDX-License-Identifier: GPL-2.0 */
/* What `ipvsctl stats latency` prints. */
#ifndef IPVSCTL_STATS_LATENCY_H
#define IPVSCTL_STATS_LATENCY_H

#include <stdbool.h>

struct filter;

/* Those services that pass @f and measure; with @servers, each one's real servers. */
int stats_latency_print(const struct filter *f, bool servers);

#endif

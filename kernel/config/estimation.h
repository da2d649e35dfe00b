/* SPDX-License-Identifier: GPL-2.0 */
/* net.ipv4.vs.run_estimation. */
#ifndef _L4LB_ESTIMATION_H
#define _L4LB_ESTIMATION_H

#include "base/net.h"

/* Freeze or resume all counters of a namespace.  Configuration mutex held. */
void l4lb_stats_freeze_all(struct l4lb_net *ln, bool frozen);

#endif /* _L4LB_ESTIMATION_H */

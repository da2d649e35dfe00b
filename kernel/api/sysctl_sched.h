/* SPDX-License-Identifier: GPL-2.0 */
/* Settings of schedulers in net.ipv4.vs. */
#ifndef _L4LB_SYSCTL_SCHED_H
#define _L4LB_SYSCTL_SCHED_H

/* Call it before the first namespace is set up. */
void l4lb_sysctl_sched_init(void);

#endif /* _L4LB_SYSCTL_SCHED_H */

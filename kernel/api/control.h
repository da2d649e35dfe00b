/* SPDX-License-Identifier: GPL-2.0 */
/* The other entry points: netlink, procfs, sysctl. */
#ifndef _L4LB_CONTROL_H
#define _L4LB_CONTROL_H

#include <linux/types.h>

struct l4lb_net;
struct l4lb_sched_ops;
struct l4lb_sysctl;

int l4lb_netlink_init(void);		/* family IPVS; -EEXIST if taken */
void l4lb_netlink_exit(void);

int l4lb_own_init(void);		/* family L4LB */
void l4lb_own_exit(void);

int l4lb_procfs_net_init(struct l4lb_net *ln);
void l4lb_procfs_net_exit(struct l4lb_net *ln);

/* Before the first command may come; net_init makes the files. */
void l4lb_sysctl_defaults(struct l4lb_sysctl *sysctl);
int l4lb_sysctl_net_init(struct l4lb_net *ln);
void l4lb_sysctl_net_exit(struct l4lb_net *ln);

/* Settings of schedulers (sysctl_sched.c), one after the other. */
int l4lb_sysctl_sched_add(struct l4lb_net *ln, const struct l4lb_sched_ops *ops);
void l4lb_sysctl_sched_del(struct l4lb_net *ln, const struct l4lb_sched_ops *ops);
u32 l4lb_sysctl_sched_value(const struct l4lb_net *ln,
			    const struct l4lb_sched_ops *ops, unsigned int i);

#endif /* _L4LB_CONTROL_H */

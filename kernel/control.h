/* SPDX-License-Identifier: GPL-2.0 */
/* The other entry points: netlink, procfs, sysctl. */
#ifndef _L4LB_CONTROL_H
#define _L4LB_CONTROL_H

struct l4lb_net;

int l4lb_netlink_init(void);		/* family IPVS; -EEXIST if taken */
void l4lb_netlink_exit(void);

int l4lb_own_init(void);		/* family L4LB */
void l4lb_own_exit(void);

int l4lb_procfs_net_init(struct l4lb_net *ln);
void l4lb_procfs_net_exit(struct l4lb_net *ln);

int l4lb_sysctl_net_init(struct l4lb_net *ln);
void l4lb_sysctl_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_CONTROL_H */

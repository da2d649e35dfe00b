/* SPDX-License-Identifier: GPL-2.0 */
/* The netlink family IPVS, compatible with in-tree ip_vs. */
#ifndef _L4LB_NETLINK_IPVS_H
#define _L4LB_NETLINK_IPVS_H

int l4lb_netlink_init(void);		/* -EEXIST if the name is taken */
void l4lb_netlink_exit(void);

#endif /* _L4LB_NETLINK_IPVS_H */

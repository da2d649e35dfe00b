/* SPDX-License-Identifier: GPL-2.0 */
/* Files in /proc/net. */
#ifndef _L4LB_PROCFS_H
#define _L4LB_PROCFS_H

#include "base/net.h"

int l4lb_procfs_net_init(struct l4lb_net *ln);
void l4lb_procfs_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_PROCFS_H */

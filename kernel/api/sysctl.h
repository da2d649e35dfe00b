/* SPDX-License-Identifier: GPL-2.0 */
/* Settings of a namespace in net.ipv4.vs. */
#ifndef _L4LB_SYSCTL_H
#define _L4LB_SYSCTL_H

#include "base/net.h"

/* Defaults are set before the first command; net_init creates the files. */
void l4lb_sysctl_defaults(struct l4lb_sysctl *sysctl);
int l4lb_sysctl_net_init(struct l4lb_net *ln);
void l4lb_sysctl_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_SYSCTL_H */

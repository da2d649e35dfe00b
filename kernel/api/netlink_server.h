/* SPDX-License-Identifier: GPL-2.0 */
/* Changes of one real server, and of counters, in family L4LB. */
#ifndef _L4LB_NETLINK_SERVER_H
#define _L4LB_NETLINK_SERVER_H

#include "service/service.h"

#include <net/genetlink.h>

/* Carry out a request for @svc.  Configuration mutex held. */
int l4lb_nl_set_server(struct l4lb_service *svc, struct genl_info *info);
int l4lb_nl_zero_service(struct l4lb_service *svc, struct genl_info *info);

#endif /* _L4LB_NETLINK_SERVER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Which services need conntrack for the connections that a helper helps. */
#ifndef _L4LB_CONFIG_HELPER_H
#define _L4LB_CONFIG_HELPER_H

#include "conn/helper.h"
#include "service/service.h"

/* For the helper's module. */
int l4lb_helper_register(const struct l4lb_helper *helper);
void l4lb_helper_unregister(void);

/* @svc has a real server with NAT.  Configuration mutex. */
void l4lb_service_help(struct l4lb_service *svc);
/* @svc is removed.  Configuration mutex. */
void l4lb_service_unhelp(struct l4lb_service *svc);

#endif /* _L4LB_CONFIG_HELPER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Beginning and end of slow starts.  Configuration mutex held throughout. */
#ifndef _L4LB_CONFIG_RAMP_H
#define _L4LB_CONFIG_RAMP_H

#include "service/server.h"

struct work_struct;

/* Do real servers that join others in @svc now start slowly?  @seconds: its policy. */
bool l4lb_ramp_due(const struct l4lb_service *svc, u32 seconds);
/* The same for @server, which is about to be added or to get a weight.  If it joins
 * nobody, the service is as new as it.
 */
bool l4lb_ramp_applies(struct l4lb_service *svc,
		       const struct l4lb_server *server);
/* Before the pool is built with it. */
void l4lb_ramp_begin(struct l4lb_server *server, struct l4lb_service *svc);
/* Looks each second whether newcomers have had their time.  May sleep. */
void l4lb_ramp_look(struct work_struct *work);

#endif /* _L4LB_CONFIG_RAMP_H */

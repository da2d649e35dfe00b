/* SPDX-License-Identifier: GPL-2.0 */
/* Changes of a service's policy.  Configuration mutex held. */
#ifndef _L4LB_CONFIG_POLICY_H
#define _L4LB_CONFIG_POLICY_H

#include "service/service.h"

/* Can what @policy asks for, and was not on before, work with the real servers? */
int l4lb_policy_check_nat(const struct l4lb_service *svc,
			  const struct l4lb_policy *policy,
			  struct netlink_ext_ack *extack);
/* Can @svc have @cfg, if it has a range? */
int l4lb_policy_check_range(const struct l4lb_service *svc,
			    const struct l4lb_svc_config *cfg,
			    struct netlink_ext_ack *extack);
/* The same for conn-state lazy, with @flags and the scheduler @ops. */
int l4lb_policy_check_lazy(const struct l4lb_service *svc,
			   const struct l4lb_policy *policy, u32 flags,
			   const struct l4lb_sched_ops *ops,
			   struct netlink_ext_ack *extack);
/* The same for full NAT; @sip: with persistence engine sip. */
int l4lb_policy_check_snat(const struct l4lb_service *svc,
			   const struct l4lb_policy *policy, u32 flags, bool sip,
			   struct netlink_ext_ack *extack);
int l4lb_service_reserve_policy(struct l4lb_service *svc,
				const struct l4lb_policy *policy,
				struct netlink_ext_ack *extack);
int l4lb_service_set_policy(struct l4lb_service *svc,
			    const struct l4lb_policy *policy,
			    struct netlink_ext_ack *extack);

/* 0 in @timeouts: that one stays. */
void l4lb_timeouts_set(struct l4lb_net *ln, const struct l4lb_timeouts *timeouts);

/* One value of the policy; also called when the service is deleted. */
void l4lb_service_set_fast_path(struct l4lb_service *svc, u32 mode);
void l4lb_service_set_conn_state(struct l4lb_service *svc, u32 mode);
void l4lb_service_apply_policy(struct l4lb_service *svc,
			       const struct l4lb_policy *policy);

#endif /* _L4LB_CONFIG_POLICY_H */

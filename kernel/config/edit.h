/* SPDX-License-Identifier: GPL-2.0 */
/* Changes of virtual services.  Configuration mutex held, may sleep, errno +
 * extack.
 */
#ifndef _L4LB_EDIT_H
#define _L4LB_EDIT_H

#include "service/service.h"

struct l4lb_pool;
struct l4lb_sched_inst;

int l4lb_service_add(struct l4lb_net *ln, const struct l4lb_svc_key *key,
		     const struct l4lb_svc_config *cfg,
		     const struct l4lb_sched_ops *ops,
		     struct netlink_ext_ack *extack);
int l4lb_service_edit(struct l4lb_service *svc,
		      const struct l4lb_svc_config *cfg,
		      const struct l4lb_sched_ops *ops,
		      struct netlink_ext_ack *extack);
void l4lb_service_del(struct l4lb_service *svc);
void l4lb_service_del_one(struct l4lb_service *svc);
void l4lb_service_flush(struct l4lb_net *ln);
void l4lb_service_del_all(struct l4lb_net *ln);
void l4lb_service_del_others(struct l4lb_net *ln);
int l4lb_service_may_go(const struct l4lb_service *svc,
			struct netlink_ext_ack *extack);

/* Steps of adding and editing, for batches.  Creating, inserting and building a
 * pool may fail: then discard the service.  Enlist and settle cannot fail.
 */
int l4lb_service_insert(struct l4lb_service *svc,
			struct netlink_ext_ack *extack);
void l4lb_service_enlist(struct l4lb_service *svc,
			 const struct l4lb_svc_config *cfg);
void l4lb_service_discard(struct l4lb_service *svc);
void l4lb_service_settle(struct l4lb_service *svc,
			 const struct l4lb_svc_config *cfg,
			 struct l4lb_sched_inst *inst, struct l4lb_pool *pool);

/* Allocate what connections need, when the first service is added. */
int l4lb_service_net_prepare(struct l4lb_net *ln,
			     struct netlink_ext_ack *extack);

#endif /* _L4LB_EDIT_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Changes of the real servers of a service.  Configuration mutex held, may
 * sleep, errno + extack.
 */
#ifndef _L4LB_SERVER_EDIT_H
#define _L4LB_SERVER_EDIT_H

#include "service/server.h"

int l4lb_server_add(struct l4lb_service *svc,
		    const struct l4lb_server_config *cfg,
		    struct netlink_ext_ack *extack);
int l4lb_server_edit(struct l4lb_service *svc, struct l4lb_server *server,
		     const struct l4lb_server_config *cfg,
		     struct netlink_ext_ack *extack);
int l4lb_server_del(struct l4lb_service *svc, struct l4lb_server *server,
		    struct netlink_ext_ack *extack);

/* Steps of adding, for batches.  Prepare finds or creates the real server of
 * @cfg and may fail; release undoes it.  Enlist adds a new server
 * (l4lb_server_is_new()) to the service and cannot fail; retire removes one.
 */
struct l4lb_server *l4lb_server_prepare(struct l4lb_service *svc,
					const struct l4lb_server_config *cfg,
					struct netlink_ext_ack *extack);
void l4lb_server_release(struct l4lb_server *server);
void l4lb_server_enlist(struct l4lb_server *server, struct l4lb_service *svc);
void l4lb_server_retire(struct l4lb_server *server, struct l4lb_service *svc);
void l4lb_server_settled(struct l4lb_server *server,
			 const struct l4lb_server_config *old);

static inline bool l4lb_server_is_new(const struct l4lb_server *server)
{
	return !server->available;
}

/* Call it after removing servers or services: expire_nodest_conn. */
void l4lb_server_removed(struct l4lb_net *ln);
/* The service is being deleted: move all its real servers to the trash. */
void l4lb_server_del_all(struct l4lb_service *svc);
/* The policy of @svc has changed: set on_loss of its removed real servers. */
void l4lb_server_set_loss(const struct l4lb_service *svc);
/* The same for all services that the batch names. */
void l4lb_server_set_loss_named(struct l4lb_net *ln);

#endif /* _L4LB_SERVER_EDIT_H */

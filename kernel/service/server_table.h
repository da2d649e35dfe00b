/* SPDX-License-Identifier: GPL-2.0 */
/* Real servers by source, for packets, and by name, for configuration. */
#ifndef _L4LB_SERVER_TABLE_H
#define _L4LB_SERVER_TABLE_H

#include "service/server.h"

enum { L4LB_PLACEHOLDERS_MAX = 1024 };	/* of a namespace */

/* Why are packets not forwarded to @server, which is not available? */
static inline enum l4lb_drop l4lb_server_lack(const struct l4lb_server *server)
{
	return READ_ONCE(server->placeholder) ? L4LB_DROP_NO_DEST :
						L4LB_DROP_DEST_GONE;
}

int l4lb_server_table_init(struct l4lb_net *ln);
void l4lb_server_table_exit(struct l4lb_net *ln);
int l4lb_server_table_add(struct l4lb_server *server);
void l4lb_server_table_update(struct l4lb_server *server);
void l4lb_server_table_del(struct l4lb_server *server);
void l4lb_server_table_leave(struct l4lb_server *server, struct l4lb_service *svc);
int l4lb_server_name_add(struct l4lb_server *server);
void l4lb_server_name_del(struct l4lb_server *server);
void l4lb_server_name_pass(struct l4lb_server *server,
			   struct l4lb_server *heir);
struct l4lb_server *l4lb_server_by_name(struct l4lb_net *ln,
					const struct l4lb_server_name *name);
/* RCU; it may be in the trash and have no reference any more. */
struct l4lb_server *l4lb_server_by_name_rcu(struct l4lb_net *ln,
					    const struct l4lb_server_name *name);
bool l4lb_server_is_source(struct l4lb_net *ln, const struct l4lb_flow *flow);
struct l4lb_server *l4lb_server_stateless(struct l4lb_net *ln,
					  const struct l4lb_flow *flow);
bool l4lb_server_is_told_apart(const struct l4lb_server *server);

#endif /* _L4LB_SERVER_TABLE_H */

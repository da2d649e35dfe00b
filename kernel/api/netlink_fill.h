/* SPDX-License-Identifier: GPL-2.0 */
/* From objects to the messages that describe them: family IPVS, and what the
 * family L4LB shares of that.
 */
#ifndef _L4LB_NETLINK_FILL_H
#define _L4LB_NETLINK_FILL_H

#include "service/server.h"

#include <net/genetlink.h>

/* Configuration mutex held.  -EMSGSIZE if there is no room, nothing added. */
int l4lb_nl_fill_service(struct sk_buff *skb, struct l4lb_service *svc);
int l4lb_nl_fill_dest(struct sk_buff *skb, struct l4lb_server *server);
int l4lb_nl_fill_config(struct sk_buff *skb, const struct l4lb_net *ln);
int l4lb_nl_fill_info(struct sk_buff *skb, struct l4lb_net *ln);

int l4lb_nl_fill_key(struct sk_buff *skb, const struct l4lb_svc_key *key);
/* Parts of the above, without nests of their own; likewise. */
int l4lb_nl_fill_service_config(struct sk_buff *skb,
				const struct l4lb_service *svc);
int l4lb_nl_fill_service_stats64(struct sk_buff *skb,
				 struct l4lb_service *svc);
int l4lb_nl_fill_dest_config(struct sk_buff *skb,
			     const struct l4lb_server *server);
int l4lb_nl_fill_dest_live(struct sk_buff *skb, struct l4lb_server *server);

/**
 * struct l4lb_nl_cursor - where a dump of the services goes on
 * @key: of the next service, spares counting through thousands of others
 * @index: its place in the list, in case it is gone
 */
struct l4lb_nl_cursor {
	struct l4lb_svc_key	key;
	unsigned int		index;
};

/* Configuration mutex held.  NULL: there are no more. */
struct l4lb_service *l4lb_nl_cursor_service(struct l4lb_net *ln,
					    const struct l4lb_nl_cursor *cursor);

/* The next call ends the dump. */
static inline void l4lb_nl_cursor_end(struct l4lb_nl_cursor *cursor)
{
	cursor->index = UINT_MAX;
}

#endif /* _L4LB_NETLINK_FILL_H */

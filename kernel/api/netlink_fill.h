/* SPDX-License-Identifier: GPL-2.0 */
/* Filling messages: family IPVS, and parts shared with family L4LB. */
#ifndef _L4LB_NETLINK_FILL_H
#define _L4LB_NETLINK_FILL_H

#include "service/server.h"

#include <net/genetlink.h>

/* Configuration mutex held.  -EMSGSIZE if there is no room. */
int l4lb_nl_fill_service(struct sk_buff *skb, struct l4lb_service *svc);
int l4lb_nl_fill_dest(struct sk_buff *skb, struct l4lb_server *server);
int l4lb_nl_fill_config(struct sk_buff *skb, const struct l4lb_net *ln);
int l4lb_nl_fill_info(struct sk_buff *skb, struct l4lb_net *ln);

/* Parts of the above, without a nest of their own.  After -EMSGSIZE the caller
 * must cancel its nest or message.
 */
int l4lb_nl_fill_key(struct sk_buff *skb, const struct l4lb_svc_key *key);
int l4lb_nl_fill_service_config(struct sk_buff *skb,
				const struct l4lb_service *svc);
int l4lb_nl_fill_service_stats64(struct sk_buff *skb,
				 struct l4lb_service *svc);
int l4lb_nl_fill_dest_config(struct sk_buff *skb,
			     const struct l4lb_server *server);
int l4lb_nl_fill_dest_live(struct sk_buff *skb, struct l4lb_server *server);
int l4lb_nl_fill_dest_conns(struct sk_buff *skb,
			    const struct l4lb_server *server);

/**
 * struct l4lb_nl_cursor - position of a dump of services
 * @key: key of the next service, to find it without walking the list
 * @index: its index in the list, in case it has been deleted
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

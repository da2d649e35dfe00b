/* SPDX-License-Identifier: GPL-2.0 */
/* Commands of family L4LB about peers. */
#ifndef _L4LB_NETLINK_PEER_H
#define _L4LB_NETLINK_PEER_H

#include <net/genetlink.h>

#include "l4lb.h"

struct l4lb_sync_peer;

extern const struct nla_policy l4lb_nl_sync_policy[L4LB_SYNC_ATTR_VERIFY + 1];
extern const struct nla_policy l4lb_nl_peer_policy[L4LB_PEER_ATTR_HOPS + 1];

/* Tell listeners that a peer's state has changed.  @peer->peers->lock held. */
void l4lb_nl_peer_event(struct l4lb_sync_peer *peer);

int l4lb_nl_get_sync(struct sk_buff *skb, struct genl_info *info);
int l4lb_nl_dump_peers(struct sk_buff *skb, struct netlink_callback *cb);
int l4lb_nl_set_sync(struct sk_buff *skb, struct genl_info *info);
int l4lb_nl_new_peer(struct sk_buff *skb, struct genl_info *info);
int l4lb_nl_del_peer(struct sk_buff *skb, struct genl_info *info);
int l4lb_nl_sync_resync(struct sk_buff *skb, struct genl_info *info);
int l4lb_nl_sync_verify(struct sk_buff *skb, struct genl_info *info);

#endif /* _L4LB_NETLINK_PEER_H */

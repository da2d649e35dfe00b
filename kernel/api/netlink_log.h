/* SPDX-License-Identifier: GPL-2.0 */
/* The log of connections: the multicast group L4LB_GENL_LOG. */
#ifndef _L4LB_NETLINK_LOG_H
#define _L4LB_NETLINK_LOG_H

struct genl_info;
struct l4lb_net;
struct sk_buff;

void l4lb_nl_log_init(void);
int l4lb_nl_get_log(struct sk_buff *skb, struct genl_info *info);
/* Namespaces may open a log from the time when the whole module is loaded until it is
 * about to go.
 */
void l4lb_nl_log_allow(bool allow);

/* Per namespace, may sleep: tell what is left, while the family exists, and nothing
 * from then on; free it, a grace period later.
 */
void l4lb_nl_log_stop(struct l4lb_net *ln);
void l4lb_nl_log_destroy(struct l4lb_net *ln);

#endif /* _L4LB_NETLINK_LOG_H */

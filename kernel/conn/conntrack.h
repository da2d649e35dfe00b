/* SPDX-License-Identifier: GPL-2.0 */
/* The firewall's connection tracking. */
#ifndef _L4LB_CONNTRACK_H
#define _L4LB_CONNTRACK_H

#include <net/netfilter/nf_conntrack.h>

#include "conn/conn.h"

#if IS_ENABLED(CONFIG_NF_CONNTRACK)
static inline void l4lb_skb_untrack(struct sk_buff *skb)
{
	nf_conntrack_put(skb_nfct(skb));
	nf_ct_set(skb, NULL, IP_CT_UNTRACKED);
}

/* Only for connections with L4LB_CONN_TRACKED. */
void l4lb_ct_alter(struct sk_buff *skb, const struct l4lb_conn *conn, bool reply);
void l4lb_ct_renew(struct sk_buff *skb, struct net *net,
		   const struct l4lb_pkt *pkt);
void l4lb_ct_drop(const struct l4lb_conn *conn);
#else
static inline void l4lb_skb_untrack(struct sk_buff *skb) { }
static inline void l4lb_ct_alter(struct sk_buff *skb, const struct l4lb_conn *conn,
				 bool reply) { }
static inline void l4lb_ct_renew(struct sk_buff *skb, struct net *net,
				 const struct l4lb_pkt *pkt) { }
static inline void l4lb_ct_drop(const struct l4lb_conn *conn) { }
#endif

#endif /* _L4LB_CONNTRACK_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * Guards: packets from outside that are addressed to a VIP, but match no
 * service, do not reach this host's own programs.
 *
 * Services with a guard are in a table by address.  A guard stops packets that
 * would open a connection, and datagrams without a connected socket here: the
 * connections that this host made from the VIP go on.  The stack refuses other
 * stray packets, in the same way whether or not a program listens.
 */
#include "service/guard.h"

#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netlink.h>
#include <linux/rhashtable.h>

/* Address and family: the key's part before the protocol, with mark 0. */
static const struct rhashtable_params guard_params = {
	.key_len	= offsetof(struct l4lb_svc_key, protocol),
	.key_offset	= offsetof(struct l4lb_service, key),
	.head_offset	= offsetof(struct l4lb_service, guard_node),
	.automatic_shrinking = true,
};

static bool opens(const struct sk_buff *skb, const struct l4lb_pkt *pkt)
{
	switch (pkt->flow.proto) {
	case IPPROTO_TCP:
		return !(pkt->tcp & (L4LB_TCP_FLAG_ACK | L4LB_TCP_FLAG_RST));
	case IPPROTO_SCTP:
		return pkt->chunk == SCTP_CID_INIT;
	default:
		/* If set, early demultiplexing found a connected socket. */
		return !skb->sk;
	}
}

u32 l4lb_guard_find(const struct sk_buff *skb, const struct l4lb_pkt *pkt,
		    struct l4lb_net *ln)
{
	const struct l4lb_svc_key key = {
		.addr	= pkt->flow.daddr,
		.af	= pkt->flow.af,
	};
	struct rhlist_head *list, *pos;
	struct l4lb_service *svc;
	u32 guard = L4LB_GUARD_OFF;

	if (likely(!READ_ONCE(ln->n_guards)) ||
	    pkt->hook != NF_INET_LOCAL_IN ||
	    skb->dev->flags & IFF_LOOPBACK || !opens(skb, pkt))
		return L4LB_GUARD_OFF;
	/* The strictest of the services with this address decides. */
	list = rhltable_lookup(&ln->guards, &key, guard_params);
	rhl_for_each_entry_rcu(svc, pos, list, guard_node)
		guard = max(guard, READ_ONCE(svc->policy.guard));
	return guard;
}

/* Once in the table a service stays there: if its node was removed and inserted
 * again, a reader standing on it would continue in another chain.
 */
int l4lb_guard_reserve(struct l4lb_service *svc, u32 guard,
		       struct netlink_ext_ack *extack)
{
	struct l4lb_net *ln = svc->ln;
	int err;

	lockdep_assert_held(&ln->lock);
	if (guard && svc->key.fwmark) {
		NL_SET_ERR_MSG(extack, "a firewall mark has no address to guard");
		return -EINVAL;
	}
	if (!guard || svc->guard_listed)
		return 0;
	err = rhltable_insert(&ln->guards, &svc->guard_node, guard_params);
	if (err)
		NL_SET_ERR_MSG(extack, "no memory for the guard");
	else
		svc->guard_listed = true;
	return err;
}

void l4lb_guard_set(struct l4lb_service *svc, u32 guard)
{
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	WRITE_ONCE(ln->n_guards,
		   ln->n_guards + !!guard - !!svc->policy.guard);
	WRITE_ONCE(svc->policy.guard, guard);
}

void l4lb_guard_del(struct l4lb_service *svc)
{
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	WRITE_ONCE(ln->n_guards, ln->n_guards - !!svc->policy.guard);
	if (svc->guard_listed)
		rhltable_remove(&ln->guards, &svc->guard_node, guard_params);
}

int l4lb_guard_net_init(struct l4lb_net *ln)
{
	return rhltable_init(&ln->guards, &guard_params);
}

/* No reader is left. */
void l4lb_guard_net_exit(struct l4lb_net *ln)
{
	rhltable_destroy(&ln->guards);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Guards: packets from outside that are addressed to a VIP, but match no
 * service, do not reach this host's own programs.
 *
 * A table has guards by address.  A guard stops packets that
 * would open a connection, and datagrams that no program here has asked for:
 * the connections that this host made from the VIP go on.  The stack refuses
 * other stray packets, in the same way whether or not a program listens.
 */
#include "service/guard.h"

#include "service/range.h"

#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netlink.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <net/inet_sock.h>
#include <net/udp.h>

/* All of a guarded address, so that a packet looks at one object, however many
 * services guard the address.
 */
struct l4lb_guarded {
	struct rhash_head	node;
	struct l4lb_svc_key	key;		/* address, family, prefix length */
	u32			strictest;	/* for packets */
	u32			n[L4LB_GUARD_MAX + 1];	/* services, by guard */
	u32			refs;		/* services that are listed */
	struct rcu_head		rcu;
};

/* Address and family: the key's part before the protocol, with mark 0. */
static const struct rhashtable_params guard_params = {
	.key_len	= offsetof(struct l4lb_svc_key, protocol),
	.key_offset	= offsetof(struct l4lb_guarded, key),
	.head_offset	= offsetof(struct l4lb_guarded, node),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

/* Has a program asked for the datagrams to this address?  A connected socket
 * has, and one that is bound to the address itself, as a resolver's or a time
 * server's that sends from it.  One that is bound to all addresses has not.
 */
static bool asked_for(const struct sk_buff *skb, const struct l4lb_flow *flow,
		      struct net *net)
{
	const struct sock *sk;

	/* If set, early demultiplexing found a connected socket. */
	if (skb->sk)
		return true;
	if (flow->af == AF_INET) {
		sk = __udp4_lib_lookup(net, flow->saddr.ip, flow->sport,
				       flow->daddr.ip, flow->dport,
				       inet_iif(skb), inet_sdif(skb),
				       l4lb_udp_table(net), NULL);
		return sk && sk->sk_rcv_saddr == flow->daddr.ip;
	}
	sk = __udp6_lib_lookup(net, &flow->saddr.in6, flow->sport,
			       &flow->daddr.in6, flow->dport,
			       inet6_iif(skb), inet6_sdif(skb),
			       l4lb_udp_table(net), NULL);
	return sk && ipv6_addr_equal(&sk->sk_v6_rcv_saddr, &flow->daddr.in6);
}

static bool opens(const struct sk_buff *skb, const struct l4lb_pkt *pkt,
		  struct net *net)
{
	switch (pkt->flow.proto) {
	case IPPROTO_TCP:
		return !(pkt->tcp & (L4LB_TCP_FLAG_ACK | L4LB_TCP_FLAG_RST));
	case IPPROTO_SCTP:
		return pkt->chunk == SCTP_CID_INIT;
	default:
		return !asked_for(skb, &pkt->flow, net);
	}
}

u32 l4lb_guard_find(const struct sk_buff *skb, const struct l4lb_pkt *pkt,
		    struct l4lb_net *ln)
{
	const struct l4lb_svc_key key = {
		.addr	= pkt->flow.daddr,
		.af	= pkt->flow.af,
	};
	const struct l4lb_guarded *guard;

	if (likely(!READ_ONCE(ln->n_guards)) ||
	    pkt->hook != NF_INET_LOCAL_IN ||
	    skb->dev->flags & IFF_LOOPBACK)
		return L4LB_GUARD_OFF;
	guard = rhashtable_lookup(&ln->guards, &key, guard_params);
	return guard && opens(skb, pkt, ln->net) ?
	       READ_ONCE(guard->strictest) : L4LB_GUARD_OFF;
}

/* The guard of the service's address, made when there is none; or an ERR_PTR(). */
static struct l4lb_guarded *guard_get(struct l4lb_service *svc)
{
	const struct l4lb_svc_key key = {
		.addr	= svc->key.addr,
		.af	= svc->key.af,
	};
	struct l4lb_net *ln = svc->ln;
	struct l4lb_guarded *guard;
	int err;

	guard = rhashtable_lookup_fast(&ln->guards, &key, guard_params);
	if (guard)
		return guard;
	guard = kzalloc(sizeof(*guard), GFP_KERNEL_ACCOUNT);
	if (!guard)
		return ERR_PTR(-ENOMEM);
	guard->key = key;
	err = rhashtable_insert_fast(&ln->guards, &guard->node, guard_params);
	if (!err)
		return guard;
	kfree(guard);
	return ERR_PTR(err);
}

int l4lb_guard_reserve(struct l4lb_service *svc, u32 guard,
		       struct netlink_ext_ack *extack)
{
	struct l4lb_guarded *found;

	lockdep_assert_held(&svc->ln->lock);
	if (guard && svc->key.fwmark) {
		NL_SET_ERR_MSG(extack, "a firewall mark has no address to guard");
		return -EINVAL;
	}
	if (guard && l4lb_key_has_vips(&svc->key)) {
		NL_SET_ERR_MSG(extack, "a prefix cannot be guarded, only a single address");
		return -EOPNOTSUPP;
	}
	if (!guard || svc->guard)
		return 0;
	found = guard_get(svc);
	if (IS_ERR(found)) {
		NL_SET_ERR_MSG(extack, "no memory for the guard");
		return PTR_ERR(found);
	}
	found->refs++;
	svc->guard = found;
	return 0;
}

static void set_strictest(struct l4lb_guarded *guard)
{
	u32 level = L4LB_GUARD_MAX;

	while (level > L4LB_GUARD_OFF && !guard->n[level])
		level--;
	WRITE_ONCE(guard->strictest, level);
}

/* A guard that is OFF counts nowhere. */
static void count(struct l4lb_service *svc, u32 guard, int by)
{
	if (guard == L4LB_GUARD_OFF)
		return;
	svc->guard->n[guard] += by;
	WRITE_ONCE(svc->ln->n_guards, svc->ln->n_guards + by);
}

void l4lb_guard_set(struct l4lb_service *svc, u32 guard)
{
	lockdep_assert_held(&svc->ln->lock);
	if (!svc->guard)
		return;
	count(svc, guard, 1);
	count(svc, svc->policy.guard, -1);
	WRITE_ONCE(svc->policy.guard, guard);
	set_strictest(svc->guard);
}

void l4lb_guard_del(struct l4lb_service *svc)
{
	struct l4lb_net *ln = svc->ln;
	struct l4lb_guarded *guard = svc->guard;

	lockdep_assert_held(&ln->lock);
	if (!guard)
		return;
	count(svc, svc->policy.guard, -1);
	set_strictest(guard);
	svc->guard = NULL;
	if (--guard->refs)
		return;
	rhashtable_remove_fast(&ln->guards, &guard->node, guard_params);
	kfree_rcu(guard, rcu);
}

int l4lb_guard_net_init(struct l4lb_net *ln)
{
	return rhashtable_init(&ln->guards, &guard_params);
}

/* No reader is left. */
void l4lb_guard_net_exit(struct l4lb_net *ln)
{
	rhashtable_destroy(&ln->guards);
}
